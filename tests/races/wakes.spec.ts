/*
 * News at the very moment in which a turn lets go of its run: whoever comes too late for the turn leaves
 * something that makes the run move without waiting for its fallback.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import type { TurnCommit } from '../../src/store/ports/turn_commits.ts'
import type { SignalWaiter } from '../../src/types/checkpoint.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const LEASE_MS = 30_000

const WAITS: Record<string, (ctx: WorkflowCtx) => Promise<unknown>> = {
  'a signal': (ctx) => ctx.waitForSignal('go'),
  'a bounded signal': (ctx) => ctx.waitForSignal('go', { timeoutMs: 60_000 }),
  'an update': (ctx) => ctx.onUpdate('change'),
  'a webhook': (ctx) => ctx.webhook().wait(),
  'a task': (ctx) => ctx.task('work', async () => {}),
  'a breakpoint': (ctx) => ctx.breakpoint().then(() => 'payload'),
}

for (const kind of await storesUnderTest()) {
  test.group(`Wakes | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    for (const [what, wait] of Object.entries(WAITS)) {
      test(`a payload that is buffered between the registering and the park wakes the wait for ${what}`, async ({
        assert,
      }) => {
        const engine = world.engine()
        engine.register('w', '1', async (ctx) => [await wait(ctx)])
        const buffered: string[] = []
        // A sender that had looked for waiters before this one was there.
        const bufferOnce = async (token: string) => {
          if (buffered.push(token) > 1) return
          const payload = what === 'a task' ? { ok: true, value: 'payload' } : 'payload'
          await world.store.bufferSignal(token, payload)
        }
        const gate = world.gate(engine)
        gate.around('commitTurn', async (proceed, [commit]) => {
          const answer = await proceed()
          const { waits = [] } = commit as TurnCommit
          if (waits.length > 0) await bufferOnce(waits[0].waiter.token)
          return answer
        })
        // Where commits are made of single calls: once the wait has looked after it registered.
        gate.around('putSignalWaiter', async (proceed, [waiter]) => {
          await proceed()
          gate.once('takeBufferedSignal', async (look) => {
            const nothing = await look()
            await bufferOnce((waiter as SignalWaiter).token)
            return nothing
          })
        })
        await engine.start('w', null, 'r')
        assert.deepEqual(await world.output('r'), ['payload'])
        assert.lengthOf(buffered, 1)
        assert.deepEqual(await world.store.listSignalWaiters(''), [])
        assert.isNull(await world.store.takeBufferedSignal(buffered[0]))
      }).tags(['@scenario-13', '@race-17'])
    }

    test('a wake whose request comes after the holder has parked the run executes it', async ({
      assert,
    }) => {
      const [holding, receiving] = [0, 1].map(() => world.engine({ transport: 'held' }))
      const gate = deferred<void>()
      const begun = deferred<void>()
      for (const engine of [holding, receiving]) {
        engine.register('w', '1', async (ctx) => {
          const [answer] = await Promise.all([
            ctx.step('remote', 1),
            ctx.localStep('work', async () => {
              begun.resolve()
              await gate.promise
            }),
          ])
          return answer
        })
      }
      await holding.start('w', null, 'r')
      const task = await world.held.task('remote')
      await begun.promise
      await world.quiet()
      let parked = false
      world.gate(receiving).once('updateRunIf', async (proceed) => {
        gate.resolve()
        await world.reached('r', 'suspended')
        parked = true
        return proceed()
      })
      await world.held.complete(task, 'answer', world.port(receiving))
      await world.quiet()
      assert.isTrue(parked)
      assert.equal(await world.output('r'), 'answer')
    }).tags(['@race-26'])

    test('news at an engine whose turn has lost its run reaches whoever took it over', async ({
      assert,
    }) => {
      const [stuck, other] = [0, 1].map(() => world.engine({ transport: 'held' }))
      const begun = deferred<void>()
      const gate = deferred<void>()
      for (const engine of [stuck, other]) {
        engine.register('w', '1', async (ctx) => {
          const [answer] = await Promise.all([
            ctx.step('remote', 1),
            ctx.localStep('work', async () => {
              begun.resolve()
              if (engine === stuck) await gate.promise
            }),
          ])
          return answer
        })
      }
      await stuck.start('w', null, 'r')
      const task = await world.held.task('remote')
      await begun.promise
      await world.quiet()
      world.time.jump(LEASE_MS + 1)
      await other.recoverIncomplete()
      await other.resumeDueTimers()
      await world.parked('r')
      await world.held.complete(task, 'answer', world.port(stuck))
      await other.resumeDueTimers()
      assert.equal(await world.output('r'), 'answer')
      gate.resolve()
    }).tags(['@race-26'])
  })
}
