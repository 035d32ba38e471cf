/*
 * Entities that are slow, cannot begin, or are not known in a process: callers hear of it, or wait without
 * making it worse.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const LEASE_MS = 30_000
const RECONCILE_MS = 300_000

for (const kind of await storesUnderTest()) {
  test.group(`Slow entities | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    function registerCaller(engine: WorkflowEngine) {
      engine.register('caller', '1', async (ctx) => {
        try {
          return await ctx.callEntity<unknown>('slow', 'k', 'op', ctx.runId)
        } catch (error) {
          return (error as Error).message
        }
      })
    }

    test('a caller that waits long sends its operation again ever more seldom', async ({
      assert,
    }) => {
      const [caller, other] = [world.engine(), world.engine()]
      registerCaller(caller)
      // Known to the callers' process, whose runs of it nobody executes.
      other.registerEntity('slow', { initialState: () => 0, handlers: { op: () => 1 } })
      caller.registerEntity('slow', {
        initialState: () => new Promise<number>(() => {}),
        handlers: { op: () => 1 },
      })
      await caller.start('caller', null, 'r')
      await world.parked('r')
      const waits = 40
      for (let i = 0; i < waits; i++) {
        await world.time.advance(Math.max(LEASE_MS, RECONCILE_MS / 4))
        await caller.resumeDueTimers()
        await world.quiet()
      }
      let buffered = 0
      while ((await world.store.takeBufferedSignal('entity:slow:k')) !== null) buffered += 1
      assert.isAtLeast(buffered, 2, 'it is sent again')
      assert.isAtMost(buffered, 9, 'but not by every turn')
    })

    test('an entity that cannot begin answers its callers, and begins once it can', async ({
      assert,
    }) => {
      const engine = world.engine()
      registerCaller(engine)
      let broken = true
      engine.registerEntity('slow', {
        initialState: () => {
          if (broken) throw new Error('the defaults are missing')
          return 5
        },
        handlers: { op: (state: number) => state },
      })
      await engine.start('caller', null, 'a')
      assert.match(String(await world.output('a')), /failed: the defaults are missing/)
      assert.isUndefined(await engine.getEntityState('slow', 'k'))
      // The next link has tried as well: it answers one caller, and the one after it begins.
      await world.quiet()
      broken = false
      await engine.start('caller', null, 'b')
      assert.match(String(await world.output('b')), /failed: the defaults are missing/)
      await world.quiet()
      await engine.start('caller', null, 'c')
      assert.equal(await world.output('c'), 5)
      assert.equal(await engine.getEntityState('slow', 'k'), 5)
    })

    test('a process that does not know an entity leaves its runs to those that do, and says so', async ({
      assert,
    }) => {
      const reports: string[] = []
      const logger = {
        warn: () => {},
        error: (what: string, error: unknown) => void reports.push(`${what}: ${String(error)}`),
      }
      const [ignorant, knowing] = [world.engine({ logger }), world.engine()]
      for (const engine of [ignorant, knowing]) registerCaller(engine)
      ignorant.registerEntity('another', { initialState: () => 0, handlers: {} })
      await ignorant.start('caller', null, 'r')
      await world.parked('r')
      await world.quiet()
      assert.match(reports.join('\n'), /Entity "slow" is not registered in this process/)
      knowing.registerEntity('slow', { initialState: () => 7, handlers: { op: (n: number) => n } })
      await world.time.advance(1000)
      await knowing.runPending()
      await knowing.resumeDueTimers()
      assert.equal(await world.output('r'), 7)
    })
  })
}
