/*
 * Signals and waits that meet at an awkward moment: whatever interleaves, a payload reaches exactly one
 * wait, once.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { type Moment, storesUnderTest, useWorld, type World } from '../helpers/engines.ts'

const remote = defineStep('remote', (n: number) => n)
const waitOnce = async (ctx: WorkflowCtx, token: string) => ctx.waitForSignal(token)
const waitTwice = async (ctx: WorkflowCtx, token: string) => [
  await ctx.waitForSignal(token),
  await ctx.waitForSignal(token),
]

/** Repeats a race once per moment, until one repetition runs out of moments before it acts. */
async function atEveryMoment(
  race: (at: (moment: Moment) => boolean, round: string) => Promise<boolean>
): Promise<number> {
  for (let k = 0; ; k++) {
    if (!(await race((moment) => moment.index === k, `m${k}`))) return k
  }
}

const leftovers = async (world: World, token: string) => ({
  waiters: await world.store.listSignalWaiters(token),
  buffered: await world.store.takeBufferedSignal(token),
})

const NOTHING = { waiters: [], buffered: null }

for (const kind of await storesUnderTest()) {
  test.group(`Waits | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a signal at any moment of the waiting turn arrives once', async ({ assert }) => {
      const [waiting, sending] = [world.engine(), world.engine()]
      for (const engine of [waiting, sending]) engine.register('w', '1', waitOnce)
      const moments = await atEveryMoment(async (at, id) => {
        let sent = false
        const stop = world.gate(waiting).watch(async (moment) => {
          if (!at(moment)) return
          sent = true
          await sending.signal(id, 'payload')
        })
        await waiting.start('w', id, id)
        await world.reached(id, 'suspended', 'completed')
        await world.quiet()
        stop()
        if (!sent) await sending.signal(id, 'payload')
        assert.equal(await world.output(id), 'payload', id)
        await world.quiet()
        assert.deepEqual(await leftovers(world, id), NOTHING, id)
        return sent
      })
      assert.isAbove(moments, 4)
    }).tags(['@scenario-13', '@race-17', '@control-34'])

    test('a wait that begins at any moment of the sending finds the payload once', async ({
      assert,
    }) => {
      const waiting = world.engine({ runDispatcher: { dispatch: () => {} } })
      const sending = world.engine()
      for (const engine of [waiting, sending]) engine.register('w', '1', waitOnce)
      const moments = await atEveryMoment(async (at, id) => {
        let begun = false
        await waiting.start('w', id, id)
        const stop = world.gate(sending).watch(async (moment) => {
          if (begun || !at(moment)) return
          begun = true
          await waiting.runOne(id)
        })
        await sending.signal(id, 'payload')
        stop()
        if (!begun) await waiting.runOne(id)
        assert.equal(await world.output(id), 'payload', id)
        await world.quiet()
        assert.deepEqual(await leftovers(world, id), NOTHING, id)
        return begun
      })
      assert.isAbove(moments, 2)
    }).tags(['@scenario-13', '@race-18', '@control-34'])

    test('two payloads at any moment reach two waits on one token, each once and in order', async ({
      assert,
    }) => {
      const [waiting, sending] = [world.engine(), world.engine()]
      for (const engine of [waiting, sending]) engine.register('w', '1', waitTwice)
      await atEveryMoment(async (at, id) => {
        let sent = false
        const send = async () => {
          await sending.signal(id, 1)
          await sending.signal(id, 2)
        }
        const stop = world.gate(waiting).watch(async (moment) => {
          if (!at(moment)) return
          sent = true
          await send()
        })
        await waiting.start('w', id, id)
        await world.reached(id, 'suspended', 'completed')
        await world.quiet()
        stop()
        if (!sent) await send()
        assert.deepEqual(await world.output(id), [1, 2], id)
        assert.deepEqual(await leftovers(world, id), NOTHING, id)
        return sent
      })
    }).tags(['@race-21'])

    test('a wait and a signal that look at the same time are paired by one of them', async ({
      assert,
    }) => {
      const [waiting, sending] = [world.engine(), world.engine()]
      for (const engine of [waiting, sending]) engine.register('w', '1', waitOnce)
      for (let round = 0; round < 12; round++) {
        const id = `r${round}`
        await Promise.all([waiting.start('w', id, id), sending.signal(id, round)])
        assert.equal(await world.output(id), round)
        await world.quiet()
        assert.deepEqual(await leftovers(world, id), NOTHING)
      }
    }).tags(['@race-19', '@control-34'])

    test('several signals sent at once to one wait: one arrives, the others are kept', async ({
      assert,
    }) => {
      const [waiting, sending] = [world.engine(), world.engine()]
      for (const engine of [waiting, sending]) engine.register('w', '1', waitOnce)
      await waiting.start('w', 'go', 'r')
      await world.parked('r')
      const answers = await Promise.all([1, 2, 3].map((n) => sending.signal('go', n)))
      assert.lengthOf(
        answers.filter((answer) => answer !== null),
        1
      )
      const got = await world.output('r')
      const kept: unknown[] = []
      for (;;) {
        const next = await world.store.takeBufferedSignal('go')
        if (!next) break
        kept.push(next.payload)
      }
      assert.sameMembers([got, ...kept], [1, 2, 3])
    }).tags(['@race-19'])

    test('a wait that timed out leaves alone who waits on its token by then', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('bounded', '1', async (ctx) =>
        ctx.waitForSignal('shared', { timeoutMs: 1000 }).catch(() => 'timed out')
      )
      engine.register('unbounded', '1', async (ctx) => ctx.waitForSignal('shared'))
      await engine.start('bounded', null, 'first')
      await world.parked('first')
      await engine.start('unbounded', null, 'second')
      await world.parked('second')
      world.time.jump(1001)
      await engine.resumeDueTimers()
      assert.equal(await world.output('first'), 'timed out')
      await engine.signal('shared', 'for the second')
      assert.equal(await world.output('second'), 'for the second')
    }).tags(['@race-20'])

    test('a wait answered from the buffer leaves alone who waits on its token by then', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.waitForSignal('shared'))
      await engine.start('w', null, 'first')
      await world.parked('first')
      await engine.start('w', null, 'second')
      await world.parked('second')
      // As a sender that died before it looked again: the payload lies beside the second's wait.
      await world.store.bufferSignal('shared', 1)
      world.time.jump(300_001)
      await engine.resumeDueTimers()
      await world.quiet()
      await engine.signal('shared', 2)
      assert.sameMembers([await world.output('first'), await world.output('second')], [1, 2])
    }).tags(['@race-20'])

    test('a payload and a wait that a crash left unpaired are paired by the timer pass', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', waitOnce)
      await engine.start('w', 'go', 'r')
      await world.parked('r')
      await world.store.bufferSignal('go', 'kept')
      world.time.jump(300_001)
      await engine.resumeDueTimers()
      assert.equal(await world.output('r'), 'kept')
      assert.deepEqual(await leftovers(world, 'go'), NOTHING)
    }).tags(['@race-22', '@control-36'])

    test('a wait whose turn crashed before it parked is paired after recovery', async ({
      assert,
    }) => {
      const living = world.engine()
      living.register('w', '1', waitOnce)
      await atEveryMoment(async (at, id) => {
        const doomed = world.engine()
        doomed.register('w', '1', waitOnce)
        let crashed = false
        world.gate(doomed).watch(async (moment) => {
          if (!at(moment)) return
          crashed = true
          await world.crash(doomed)
        })
        void doomed.start('w', id, id)
        await world.quiet()
        if (!crashed) await world.crash(doomed)
        if (await world.store.getRun(id)) {
          await living.signal(id, 'payload')
          world.time.jump(60_000)
          await living.recoverIncomplete()
          await living.runPending()
          await living.resumeDueTimers()
          assert.equal(await world.output(id), 'payload', id)
          assert.deepEqual(await leftovers(world, id), NOTHING, id)
        }
        return crashed
      })
    }).tags(['@race-22', '@control-36'])

    test('a signal to a run that executes elsewhere is acted on in that turn or right after', async ({
      assert,
    }) => {
      const [holding, sending] = [world.engine(), world.engine()]
      const gate = deferred<void>()
      const begun = deferred<void>()
      for (const engine of [holding, sending]) {
        engine.register('w', '1', async (ctx) => {
          const [signal] = await Promise.all([
            ctx.waitForSignal('go'),
            ctx.localStep('work', async () => {
              begun.resolve()
              await gate.promise
            }),
          ])
          return signal
        })
      }
      await holding.start('w', null, 'r')
      await begun.promise
      await world.quiet()
      const answer = await sending.signal('go', 'payload')
      assert.equal(answer?.status, 'running')
      assert.property(await world.run('r'), 'wakeRequestedAt')
      gate.resolve()
      assert.equal(await world.output('r'), 'payload')
    }).tags(['@race-26'])

    test('a result for a run that executes elsewhere is acted on in that turn or right after', async ({
      assert,
    }) => {
      const [other, holding] = [0, 1].map(() => world.engine({ transport: 'held' }))
      const gate = deferred<void>()
      for (const engine of [holding, other]) {
        engine.register('w', '1', async (ctx) => {
          const [result] = await Promise.all([
            ctx.step('remote', 1),
            ctx.localStep('work', () => gate.promise),
          ])
          return result
        })
      }
      await holding.start('w', null, 'r')
      const task = await world.held.task('remote')
      await world.held.complete(task, 'answer', world.port(other))
      assert.equal(await world.status('r'), 'running')
      gate.resolve()
      assert.equal(await world.output('r'), 'answer')
    }).tags(['@race-26'])

    test('every park for news has a fallback wake unless it was turned off', async ({ assert }) => {
      const engine = world.engine({ transport: 'held', reconcileMs: 120_000 })
      const patient = world.engine({ transport: 'held', reconcileMs: 0 })
      const bodies = {
        signal: waitOnce,
        event: async (ctx: WorkflowCtx) => ctx.waitForEvent('e', { match: { n: 1 } }),
        update: async (ctx: WorkflowCtx) => ctx.onUpdate('u'),
        task: async (ctx: WorkflowCtx) => ctx.task('t', async () => {}),
        webhook: async (ctx: WorkflowCtx) => ctx.webhook().wait(),
        breakpoint: async (ctx: WorkflowCtx) => ctx.breakpoint(),
        entity: async (ctx: WorkflowCtx) => ctx.callEntity('slow', ctx.runId, 'op'),
        child: async (ctx: WorkflowCtx) => ctx.child('signal', ctx.runId, `${ctx.runId}-kid`),
        fan: async (ctx: WorkflowCtx) => ctx.all('signal', [`${ctx.runId}-fan`]),
        step: async (ctx: WorkflowCtx) => ctx.step('remote', 1),
        steps: async (ctx: WorkflowCtx) => ctx.all(remote, [1, 2]),
      }
      for (const each of [engine, patient]) {
        each.registerEntity('slow', {
          initialState: () => 0,
          handlers: { op: () => new Promise(() => {}) },
        })
      }
      for (const [name, body] of Object.entries(bodies)) {
        engine.register(name, '1', body)
        patient.register(name, '1', body)
        await engine.start(name, 'a', `${name}-1`)
        await patient.start(name, 'b', `${name}-2`)
        const parked = await world.parked(`${name}-1`)
        assert.equal(parked.wakeAt, world.time.now + 120_000)
        assert.notProperty(await world.parked(`${name}-2`), 'wakeAt')
      }
    }).tags(['@race-27'])

    test('the fallback wake sends no step again and counts as no crash', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      let bodies = 0
      engine.register('w', '1', async (ctx) => {
        bodies += 1
        return ctx.step('remote', 1)
      })
      await engine.start('w', null, 'r')
      const task = await world.held.task('remote')
      for (let pass = 0; pass < 3; pass++) {
        await world.parked('r')
        world.time.jump(300_001)
        assert.lengthOf(await engine.resumeDueTimers(), 1)
      }
      assert.equal(bodies, 4)
      const run = await world.parked('r')
      assert.notProperty(run, 'recoveryAttempts')
      assert.equal(run.wakeAt, world.time.now + 300_000)
      assert.lengthOf(world.held.sent, 1)
      const row = await world.store.getCheckpoint('r', 0)
      assert.deepInclude(row, { status: 'pending', attempts: 1 })
      await world.held.complete(task, 'done')
      assert.equal(await world.output('r'), 'done')
    }).tags(['@race-28'])
  })
}
