/*
 * A fan costs so much a member, however many there are, and its parent's body runs once more, not once a
 * member. Members end side by side, so which of them meet in one statement differs from time to time: here
 * the numbers are bounds.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../../src/authoring/step.ts'
import { countedStores, registerTimes, useCounting } from './rig.ts'

const STEP = defineStep('step', (input: number) => input)
const MINUTE = 60_000
const A_MEMBER = {
  postgres: { child: 6, step: 6 },
  sqlite: { child: 11, step: 8 },
  mysql: { child: 6, step: 4 },
}
const BESIDES = 20
/** A turn a child begins with one statement more on MySQL. */
const GATE_A_MEMBER = { postgres: 8, sqlite: Number.POSITIVE_INFINITY, mysql: 9 }

for (const kind of await countedStores()) {
  const dialect = kind.dialect!
  test.group(`Fans | ${kind.name}`, (group) => {
    const rig = useCounting(group, kind)

    for (const n of [10, 100, 500]) {
      for (const member of ['child', 'step'] as const) {
        test(`${n} members, each a ${member}`, async ({ assert }) => {
          const engine = rig.engine()
          const counter = rig.counter(engine)
          engine.handle('step', (input) => input)
          registerTimes(engine, 'child', 0, async () => {})
          const inputs = Array.from({ length: n }, (_, i) => i)
          const seen = registerTimes(engine, 'fan', 1, async (ctx) => {
            if (member === 'child') return ctx.all('child', inputs)
            return ctx.all(STEP, inputs)
          })
          const cost = await counter.of(() => counter.play('fan', 'r'))
          assert.isAtMost(cost.statements, n * A_MEMBER[dialect][member] + BESIDES)
          assert.isAtMost(cost.statements, n * GATE_A_MEMBER[dialect] + BESIDES)
          assert.isAtMost(cost.rowsRead, 4 * n)
          // Batches that land before the parent parks wake it like any news; there are not many.
          assert.isAtMost(seen.bodies, 5)
        }).timeout(2 * MINUTE)
      }
    }
  })
}
