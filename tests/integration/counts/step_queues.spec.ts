/*
 * What flow-control queues cost in statements: nothing where a step is let in, one short turn where it is
 * denied, and one read a pass where somebody waits for slots that this process holds.
 */
import { test } from '@japa/runner'
import { InMemoryAdmissionBackend } from '../../../src/flow/memory_admission.ts'
import { countedStores, registerTimes, useCounting } from './rig.ts'

const DISPATCHED = { postgres: 6, sqlite: 7, mysql: 7 }
/** Beyond the pass that claims: its rows are read, and it is parked again. */
const DENIED = { postgres: 2, sqlite: 3, mysql: 4 }

for (const kind of await countedStores()) {
  const dialect = kind.dialect!
  test.group(`Step queues | ${kind.name}`, (group) => {
    const rig = useCounting(group, kind)

    test('a step that is let in costs what any dispatched step costs', async ({ assert }) => {
      const engine = rig.engine()
      const counter = rig.counter(engine)
      engine.registerQueue({ name: 'q', concurrency: 1, rateLimit: { limit: 9, periodMs: 1000 } })
      engine.handle('remote', () => 'value')
      registerTimes(engine, 'empty', 0, async () => {})
      const empty = await counter.of(() => counter.play('empty', 'e'))
      registerTimes(engine, 'w', 3, (ctx) => ctx.step('remote', 1, { queue: 'q' }))
      const cost = await counter.of(() => counter.play('w', 'r'))
      assert.equal(cost.statements - empty.statements, 3 * DISPATCHED[dialect])
    })

    test('a denied step costs the turn that asks; a review one read, where somebody waits', async ({
      assert,
    }) => {
      // Freed slots wake nobody: what is counted is the pass.
      const admission = new InMemoryAdmissionBackend({ clock: rig.world.time.clock })
      admission.onFreed = () => () => {}
      const engine = rig.engine({ transport: 'held', admission })
      const counter = rig.counter(engine)
      engine.registerQueue({ name: 'q', concurrency: 1 })
      registerTimes(engine, 'w', 1, (ctx) => ctx.step('remote', 1, { queue: 'q' }))
      const pass = () => counter.of(() => engine.resumeDueTimers())
      const idle = await pass()
      await counter.play('w', 'a', 'run.suspended')
      const held = await pass()
      assert.equal(held.statements, idle.statements)
      await counter.play('w', 'b', 'run.suspended')
      const contested = await pass()
      assert.equal(contested.statements, idle.statements + 1)
      rig.world.time.jump(1000)
      const denied = await pass()
      assert.equal(denied.statements - contested.statements, DENIED[dialect])
      assert.deepEqual(denied.written, {})
    })
  })
}
