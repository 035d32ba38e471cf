/*
 * What fell due while no process was there: the first tick after a boot finds it, and does it once.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { runWorkerLoop } from '../../src/loop/worker_loop.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Each waits for an hour in its own way, and answers when it went on. */
function register(engine: WorkflowEngine, tries: { count: number }): void {
  engine.handle('flaky', () => {
    tries.count += 1
    if (tries.count === 1) throw new Error('not yet')
  })
  engine.register('sleep', '1', async (ctx) => {
    await ctx.sleep('1h')
    return ctx.now()
  })
  engine.register('deadline', '1', async (ctx) => {
    await ctx.waitForSignal('nobody', { timeoutMs: HOUR }).catch(() => {})
    return ctx.now()
  })
  engine.register('retry', '1', async (ctx) => {
    await ctx.step('flaky', null, { retries: 2, backoffMs: HOUR })
    return ctx.now()
  })
  engine.register('parent', '1', (ctx) => ctx.child('sleep', null))
  engine.register('delayed', '1', async (ctx) => ctx.now())
}

const WAYS = ['sleep', 'deadline', 'retry', 'parent'] as const

for (const kind of await storesUnderTest()) {
  test.group(`After a boot | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    /** A process as it boots: the next tick but the first is far away. */
    function boot(tries: { count: number }) {
      const engine = world.engine()
      register(engine, tries)
      const stop = deferred<void>()
      const loop = runWorkerLoop(engine, {
        intervalMs: DAY,
        stopSignal: stop.promise,
        keepAlive: false,
        logger: { info: () => {}, error: (line) => void world.reports.push(line) },
        sleep: (ms) => new Promise((resolve) => void world.time.after(ms, () => resolve(null))),
      })
      const end = async () => {
        stop.resolve()
        await loop
      }
      return { engine, end }
    }

    test('sleeps, deadlines, retries and starts that fell due while every process was down go on at once', async ({
      assert,
    }) => {
      const tries = { count: 0 }
      const before = world.engine()
      register(before, tries)
      for (const way of WAYS) await before.start(way, null, way)
      await before.start('delayed', null, 'delayed', { startAt: new Date(world.time.now + HOUR) })
      for (const way of WAYS) await world.parked(way)
      await world.crash(before)
      world.time.jump(3 * DAY)

      const bootedAt = world.time.now
      const processes = [boot(tries), boot(tries)]
      const completed: string[] = []
      for (const { engine } of processes)
        engine.subscribe(
          ({ type, runId }) => void (type === 'run.completed' && completed.push(runId))
        )
      for (const id of [...WAYS, 'delayed']) assert.equal(await world.output(id), bootedAt, id)
      await world.quiet()
      assert.equal(world.time.now, bootedAt)
      assert.deepEqual(completed.sort(), [...WAYS, 'delayed', 'parent.child.0'].sort())
      assert.equal(tries.count, 2)
      for (const { end } of processes) await end()
      assert.deepEqual(world.reports, [])
    }).tags(['@scenario-3'])

    test('a sleep that begins after the boot lasts its full time', async ({ assert }) => {
      const body = (engine: WorkflowEngine) =>
        engine.register('two', '1', async (ctx) => {
          await ctx.sleep('1h')
          await ctx.sleep('1h')
          return ctx.now()
        })
      const before = world.engine()
      body(before)
      await before.start('two', null, 'r')
      await world.parked('r')
      await world.crash(before)
      world.time.jump(3 * DAY)
      const bootedAt = world.time.now
      const after = world.engine()
      body(after)
      await after.resumeDueTimers()
      assert.equal(await world.status('r'), 'suspended')
      world.time.jump(HOUR - 1)
      assert.deepEqual(await after.resumeDueTimers(), [])
      world.time.jump(1)
      assert.lengthOf(await after.resumeDueTimers(), 1)
      assert.equal(await world.output('r'), bootedAt + HOUR)
    }).tags(['@scenario-3'])
  })
}
