/*
 * Runs that a process parks without having executed them, because it cannot run them or because their slot
 * is taken, while somebody else decides about them.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { RunStatus } from '../../src/types/run.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'
import { beforeSettle } from '../helpers/settling.ts'

const singleton = { key: () => 'k' }
const IDLE = { runDispatcher: { dispatch: () => {} } }

for (const kind of await storesUnderTest()) {
  test.group(`Parks | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    /** How a run ends while the park is on its way. */
    const endings: Record<string, (other: WorkflowEngine, runId: string) => Promise<unknown>> = {
      cancelled: (other, runId) => other.cancel(runId),
      dead: (_, runId) =>
        world.store.updateRunIf(runId, ['running'], {
          status: 'dead',
          error: { message: 'crashed' },
          wakeAt: undefined,
        }),
    }

    for (const [status, end] of Object.entries(endings)) {
      test(`a run that is ${status} while it is given back stays so, and no lease is left`, async ({
        assert,
      }) => {
        const other = world.engine(IDLE)
        other.register('begins', '1', async (ctx) => ctx.waitForSignal('go'))
        for (const began of [false, true]) {
          const runId = began ? 'begun' : 'new'
          await other.start('begins', null, runId)
          if (began) await other.runOne(runId)
          const ignorant = world.engine()
          const events = world.eventsOf(ignorant)
          let parking = false
          beforeSettle(world.gate(ignorant), async () => {
            parking = true
            await end(other, runId)
          })
          if (began) await ignorant.signal('go', 1)
          else await ignorant.runPending()
          await world.quiet()
          assert.isTrue(parking)
          const run = await world.run(runId)
          assert.equal(run.status, status as RunStatus)
          assert.isUndefined(run.wakeAt)
          assert.notProperty(run, 'lockedBy')
          assert.deepEqual(events, [])
        }
      }).tags(['@race-5', '@control-4'])

      test(`a run that is ${status} while its slot is refused stays so, and no lease is left`, async ({
        assert,
      }) => {
        const [other, engine] = [world.engine(IDLE), world.engine(IDLE)]
        for (const each of [other, engine]) {
          each.register('guest', '1', async (ctx) => ctx.waitForSignal(ctx.runId), { singleton })
        }
        await engine.start('guest', null, 'holder')
        await engine.runOne('holder')
        world.time.jump(1)
        await engine.start('guest', null, 'waiter')
        const events = world.eventsOf(engine)
        const gate = world.gate(engine)
        let parking = false
        const ends = async () => {
          if (parking) return
          parking = true
          await end(other, 'waiter')
        }
        gate.around('tryAdmitSingleton', async (proceed) => {
          await ends()
          return proceed()
        })
        beforeSettle(gate, ends, 'waiter')
        await engine.runOne('waiter')
        await world.quiet()
        assert.isTrue(parking)
        const run = await world.run('waiter')
        assert.equal(run.status, status as RunStatus)
        assert.isUndefined(run.wakeAt)
        assert.notProperty(run, 'lockedBy')
        assert.notInclude(
          events.map(({ type }) => type),
          'run.suspended'
        )
      }).tags(['@race-5', '@control-4'])
    }

    test('a run is counted as running before it asks for its slot', async ({ assert }) => {
      const engine = world.engine(IDLE)
      engine.register('guest', '1', async (ctx) => ctx.waitForSignal(ctx.runId), { singleton })
      await engine.start('guest', null, 'first')
      const asked: [string, boolean][] = []
      const gate = world.gate(engine)
      const look = async (proceed: () => Promise<unknown>) => {
        asked.push([await world.status('first'), await world.isHeldBy('first', engine)])
        return proceed()
      }
      // The fallback lists the runs of the key.
      gate.around('tryAdmitSingleton', look)
      if (!kind.complete) gate.around('listRuns', look)
      await engine.runOne('first')
      assert.deepEqual(asked, [['running', true]])
      assert.lengthOf(await world.store.listSignalWaiters('first'), 1)
      // Who has not been picked up yet counts by its age as well.
      world.time.jump(1)
      await engine.start('guest', null, 'second')
      await engine.runOne('second')
      assert.equal(await world.status('second'), 'suspended')
      assert.deepEqual(await world.store.listSignalWaiters('second'), [])
    }).tags(['@race-46'])

    test('the slot that comes free where nothing is executed makes its waiter due, not timeless', async ({
      assert,
    }) => {
      const [console, worker] = [world.engine(IDLE), world.engine(IDLE)]
      const inside: string[] = []
      for (const engine of [console, worker]) {
        engine.register(
          'guest',
          '1',
          async (ctx) => {
            await ctx.localStep('enter', () => void inside.push(ctx.runId))
            await ctx.waitForSignal(ctx.runId)
          },
          { singleton }
        )
      }
      for (const runId of ['holder', 'waiter']) {
        world.time.jump(1)
        await console.start('guest', null, runId)
        await worker.runOne(runId)
      }
      const waiting = await world.run('waiter')
      assert.isAbove(waiting.wakeAt!, world.time.now)
      await console.cancel('holder')
      await world.quiet()
      const woken = await world.run('waiter')
      assert.equal(woken.status, 'suspended')
      assert.isAtMost(woken.wakeAt!, world.time.now)
      assert.deepEqual(inside, ['holder'])
      await worker.resumeDueTimers()
      assert.deepEqual(inside, ['holder', 'waiter'])
    }).tags(['@race-45', '@control-11'])
  })
}
