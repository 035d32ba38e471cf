/*
 * Entities: operations of one key run one after the other and each once, whoever sends them, whatever dies.
 */
import { setTimeout } from 'node:timers/promises'
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { FatalError } from '../../src/errors.ts'
import { type Moment, storesUnderTest, useWorld } from '../helpers/engines.ts'

interface Account {
  balance: number
  log: string[]
}

function registerAccount(engine: WorkflowEngine): void {
  engine.registerEntity<Account>('account', {
    initialState: () => ({ balance: 0, log: [] }),
    handlers: {
      deposit(state, { id, amount }: { id: string; amount: number }) {
        state.balance += amount
        state.log.push(id)
        return state.balance
      },
      async fail(state) {
        state.balance = -1
        throw new FatalError('overdrawn', 'overdrawn', { by: 5 })
      },
      huge: () => 1n,
    },
  })
  engine.register('payer', '1', async (ctx, id: string) =>
    ctx.callEntity('account', id, 'deposit', { id: ctx.runId, amount: 10 })
  )
}

for (const kind of await storesUnderTest()) {
  test.group(`Entities | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    const account = (engine: WorkflowEngine, key: string) =>
      engine.getEntityState<Account>('account', key)

    test('calls and signals of many runs are serialized per key', async ({ assert }) => {
      const engines = [world.engine(), world.engine()]
      for (const engine of engines) registerAccount(engine)
      const [engine] = engines
      assert.isUndefined(await account(engine, 'a'))
      const ids = Array.from({ length: 10 }, (_, i) => `p${i}`)
      await Promise.all(ids.map((id, i) => engines[i % 2].start('payer', i < 7 ? 'a' : 'b', id)))
      await engine.signalEntity('account', 'a', 'deposit', { id: 'out', amount: 5 })
      const balances = await Promise.all(ids.map((id) => world.output(id)))
      await world.quiet()
      assert.equal((await account(engine, 'a'))!.balance, 75)
      assert.equal((await account(engine, 'b'))!.balance, 30)
      const a = balances.slice(0, 7) as number[]
      assert.lengthOf(new Set(a), 7)
      const { log } = (await account(engine, 'a'))!
      assert.sameMembers(log, [...ids.slice(0, 7), 'out'])
    }).timeout(30_000)

    test('a link that failed, and was followed, is not brought back', async ({ assert }) => {
      const engine = world.engine()
      let failures = 0
      engine.registerEntity('counter', {
        initialState: () => 0,
        handlers: {
          fail() {
            failures += 1
            throw new FatalError('no')
          },
        },
      })
      await engine.signalEntity('counter', 'k', 'fail', null)
      await world.quiet()
      const [link] = await engine.listRuns({ status: 'failed' })
      assert.deepInclude(await engine.requeue(link.id), { runId: link.id, status: 'failed' })
      assert.deepInclude(await engine.resume(link.id), { status: 'failed' })
      await world.quiet()
      assert.equal(failures, 1)
    })

    test('an operator who brings a buried link back meets an operation that would follow it', async ({
      assert,
    }) => {
      const engines = [world.engine(), world.engine()]
      for (const engine of engines) registerAccount(engine)
      const [operator, sender] = engines
      for (let round = 0; round < 6; round++) {
        const key = `k${round}`
        await sender.signalEntity('account', key, 'deposit', { id: 'first', amount: 1 })
        await world.quiet()
        const [{ id }] = await world.store.listRuns({ status: 'suspended' })
        await world.store.updateRunIf(id, ['suspended'], { status: 'dead', wakeAt: undefined })
        const acts = [
          () => operator.requeue(id),
          () => sender.signalEntity('account', key, 'deposit', { id: 'second', amount: 1 }),
        ]
        if (round % 2) acts.reverse()
        let over = false
        const acted = Promise.all(acts.map((act) => act())).finally(() => (over = true))
        // Whoever finds the link held looks again a little later.
        while (!over) await world.time.advance(50)
        await acted
        await world.quiet()
        const live = await world.store.listRuns({ status: 'suspended' })
        assert.lengthOf(live, 1, `live links after round ${round}`)
        assert.deepEqual(await account(sender, key), { balance: 2, log: ['first', 'second'] })
        await operator.cancel(live[0].id)
      }
    })

    if (kind.complete) {
      test('a caller that dies at any moment is applied once', async ({ assert }) => {
        let moments = 0
        for (let k = 0; ; k++) {
          const [doomed, living] = [world.engine(), world.engine()]
          for (const engine of [doomed, living]) registerAccount(engine)
          const id = `k${k}`
          let died = false
          const at = (moment: Moment) => moment.index === k
          world.gate(doomed).watch(async (moment) => {
            if (died || !at(moment)) return
            died = true
            await world.crash(doomed)
          })
          void doomed.start('payer', id, `${id}-run`)
          await world.quiet()
          if (!died) break
          moments += 1
          await living.start('payer', id, `${id}-run`)
          for (let pass = 0; pass < 3; pass++) {
            world.time.jump(31_000)
            await living.runPending()
            await living.recoverIncomplete()
            await living.resumeDueTimers()
            await world.quiet()
          }
          assert.equal(await world.output(`${id}-run`), 10, id)
          await world.quiet()
          assert.deepEqual((await account(living, id))!.log, [`${id}-run`], id)
        }
        assert.isAbove(moments, 8)
      }).timeout(120_000)
    }

    test('a handler that throws answers its caller, changes nothing, and the key goes on', async ({
      assert,
    }) => {
      const engine = world.engine()
      registerAccount(engine)
      engine.register('failing', '1', async (ctx, op: string) => ctx.callEntity('account', 'a', op))
      await engine.signalEntity('account', 'a', 'deposit', { id: 'one', amount: 1 })
      await world.quiet()
      await engine.start('failing', 'fail', 'f')
      await world.ended('f')
      assert.deepInclude(await world.errorOf('f'), {
        message: '"fail" on entity "account:a" failed: overdrawn',
        code: 'overdrawn',
        details: { by: 5 },
      })
      await world.ended('entity:account:a')
      assert.equal(await world.status('entity:account:a'), 'failed')
      await engine.start('payer', 'a', 'p')
      assert.equal(await world.output('p'), 11)
      assert.deepEqual(await account(engine, 'a'), { balance: 11, log: ['one', 'p'] })
      // What lies behind it is taken without another operation.
      for (const op of ['fail', 'deposit', 'fail', 'deposit']) {
        await engine.signalEntity('account', 'b', op, { id: op, amount: 1 })
      }
      await world.quiet()
      assert.deepEqual(await account(engine, 'b'), { balance: 2, log: ['deposit', 'deposit'] })
      await engine.cancel('entity:account:b~2')
      await engine.start('payer', 'b', 'q')
      assert.equal(await world.output('q'), 12)
      for (const [i, op] of ['unknown', 'huge', 'toString'].entries()) {
        await engine.start('failing', op, `g${i}`)
        await world.ended(`g${i}`)
        assert.match((await world.errorOf(`g${i}`))!.message, new RegExp(`"${op}"`))
      }
      assert.equal((await account(engine, 'a'))!.balance, 11)
    })

    test('what waits in the buffer outlives the failure of what came before', async ({
      assert,
    }) => {
      const engine = world.engine()
      registerAccount(engine)
      for (const [i, op] of ['fail', 'deposit', 'fail', 'deposit'].entries()) {
        const arg = { id: `o${i}`, amount: 1 }
        await world.store.bufferSignal('entity:account:a', { op, arg, opId: `o${i}` })
      }
      await engine.signalEntity('account', 'a', 'deposit', { id: 'last', amount: 1 })
      await world.reached('entity:account:a~2', 'suspended')
      await world.quiet()
      assert.deepEqual(await account(engine, 'a'), { balance: 3, log: ['o1', 'o3', 'last'] })
    })

    // Five hundred operations, one after the other: on a server they only take longer.
    if (kind.dialect === undefined || kind.dialect === 'sqlite') {
      test('a long history is cut, and state and identity go on', async ({ assert }) => {
        const engine = world.engine()
        registerAccount(engine)
        for (let i = 0; i < 505; i++) {
          await world.store.bufferSignal('entity:account:a', {
            op: 'deposit',
            arg: { id: `o${i % 500}`, amount: 1 },
            opId: `o${i % 500}`,
          })
        }
        await engine.signalEntity('account', 'a', 'deposit', { id: 'last', amount: 1 })
        for (let n = 0; ; n++) {
          const state = await account(engine, 'a')
          if (state?.balance === 501) break
          assert.isBelow(n, 2000, 'the operations are executed')
          await setTimeout(20)
        }
        await world.reached('entity:account:a~1', 'suspended')
        await world.quiet()
        assert.equal((await account(engine, 'a'))!.balance, 501)
        await engine.start('payer', 'a', 'p')
        assert.equal(await world.output('p'), 511)
      }).timeout(60_000)
    }

    test('what cannot be addressed is refused', async ({ assert }) => {
      const engine = world.engine()
      assert.throws(() => engine.registerEntity('a:b', {} as never), /must not contain a colon/)
      assert.throws(() => engine.registerEntity('a', {} as never), /initialState, handlers/)
      assert.throws(
        () => engine.registerEntity('a', { initialState: () => 1, handlers: { op: 1 as never } }),
        /"op" of entity "a"/
      )
      await assert.rejects(() => engine.signalEntity('a', '', 'op'), /the entity key/)
      await assert.rejects(() => engine.signalEntity('a', 'k', 'op', 1n), /argument of "op"/)
      await assert.rejects(() => engine.getEntityState('a', 'x'.repeat(250)), /name and key/)
      engine.register('w', '1', async (ctx) => ctx.signalEntity('a:b', 'k', 'op'))
      await engine.start('w', null, 'r')
      await world.ended('r')
      assert.match((await world.errorOf('r'))!.message, /colon/)
    })

    test('a body signals without waiting, once', async ({ assert }) => {
      const engine = world.engine()
      registerAccount(engine)
      engine.register('w', '1', async (ctx) => {
        await ctx.signalEntity('account', 'a', 'deposit', { id: 's', amount: 2 })
        await ctx.waitForSignal('go')
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.signal('go')
      await world.ended('r')
      await world.quiet()
      assert.deepEqual(await account(engine, 'a'), { balance: 2, log: ['s'] })
    })
  })
}
