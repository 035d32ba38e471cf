/*
 * Events that are collected before they start a workflow.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { RegisterOptions } from '../../src/types/workflow.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Event batches | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    function registerTarget(engine: WorkflowEngine, eventBatch: RegisterOptions['eventBatch']) {
      engine.register('target', '1', async (_, input) => input, { onEvent: ['e'], eventBatch })
    }
    async function publish(engine: WorkflowEngine, from: number, to: number) {
      for (let n = from; n <= to; n++) {
        await engine.publishEvent('e', n, { id: `e${n}` })
        await world.quiet()
      }
    }
    async function pass(engine: WorkflowEngine, ms: number) {
      world.time.jump(ms)
      await engine.resumeDueTimers()
      await world.quiet()
    }
    const outputs = async (engine: WorkflowEngine) => {
      const runs = await engine.listRuns({ workflow: 'target' })
      return Object.fromEntries(runs.map((run) => [run.id, run.output]))
    }

    test('debounce starts with the last event once it has been quiet', async ({ assert }) => {
      const engine = world.engine()
      registerTarget(engine, { mode: 'debounce', windowMs: 1000 })
      await publish(engine, 1, 2)
      await pass(engine, 900)
      await publish(engine, 3, 3)
      await pass(engine, 900)
      assert.deepEqual(await outputs(engine), {})
      await pass(engine, 100)
      assert.deepEqual(await outputs(engine), { 'evt:e3:target': 3 })
      await publish(engine, 4, 4)
      await pass(engine, 1000)
      assert.deepEqual(await outputs(engine), { 'evt:e3:target': 3, 'evt:e4:target': 4 })
    })

    test('batch starts with all events of a window, or as many as it takes', async ({ assert }) => {
      const engine = world.engine()
      registerTarget(engine, { mode: 'batch', windowMs: 1000, maxSize: 3 })
      await publish(engine, 1, 2)
      await pass(engine, 999)
      assert.deepEqual(await outputs(engine), {})
      await pass(engine, 1)
      assert.deepEqual(await outputs(engine), { 'evt:e1:target': { events: [1, 2] } })
      await publish(engine, 3, 6)
      await pass(engine, 1000)
      assert.deepEqual(await outputs(engine), {
        'evt:e1:target': { events: [1, 2] },
        'evt:e3:target': { events: [3, 4, 5] },
        'evt:e6:target': { events: [6] },
      })
    })

    test('a link that ended for good is followed by another', async ({ assert }) => {
      const engine = world.engine()
      registerTarget(engine, { mode: 'batch', windowMs: 1000 })
      await publish(engine, 1, 1)
      await engine.cancel('__evtacc__:target')
      await publish(engine, 2, 2)
      await pass(engine, 1000)
      assert.deepEqual(await outputs(engine), { 'evt:e2:target': { events: [2] } })
    })

    test('a target that refuses its input keeps nothing from it', async ({ assert }) => {
      const engine = world.engine()
      engine.register('target', '1', async (_, input) => input, {
        onEvent: ['e'],
        eventBatch: { mode: 'debounce', windowMs: 10 },
        validateInput: (n) => (n === 1 ? 'not one' : undefined),
      })
      await publish(engine, 1, 1)
      await pass(engine, 10)
      await publish(engine, 2, 2)
      await pass(engine, 10)
      assert.deepEqual(await outputs(engine), { 'evt:e2:target': 2 })
      assert.lengthOf(world.reports, 1)
    })

    test('an option that cannot be meant is refused', ({ assert }) => {
      const engine = world.engine()
      const bad: [RegisterOptions['eventBatch'], RegExp][] = [
        [{ mode: 'x' as never, windowMs: 1 }, /mode must be/],
        [{ mode: 'batch', windowMs: 0 }, /windowMs must be/],
        [{ mode: 'batch', windowMs: 1, maxSize: 0 }, /maxSize must be/],
      ]
      for (const [eventBatch, message] of bad) {
        assert.throws(() => registerTarget(engine, eventBatch), message)
      }
    })
  })
}
