/*
 * A thousand dispatched steps one after the other cost a thousand times what one costs: statements, rows
 * read and body executions per step do not depend on how many went before.
 */
import { test } from '@japa/runner'
import { countedStores, registerTimes, useCounting } from './rig.ts'

const MINUTE = 60_000
const STATEMENTS_A_STEP = { postgres: 6, sqlite: 7, mysql: 7 }
/** A turn a step begins with one statement more on MySQL. */
const STATEMENTS_GATE = { postgres: 7, sqlite: Number.POSITIVE_INFINITY, mysql: 8 }
/** What the result settles, and what the next turn reads. */
const ROWS_A_STEP = 2
const ROWS_GATE = 3

for (const kind of await countedStores()) {
  const dialect = kind.dialect!
  test.group(`Dispatched steps | ${kind.name}`, (group) => {
    const rig = useCounting(group, kind)

    /** The cost of `n` steps in a row, and how often the body was executed. */
    async function play(n: number, continuations: { max?: number } | false) {
      const engine = rig.engine({ continuations })
      const counter = rig.counter(engine)
      engine.handle('remote', (input) => input)
      registerTimes(engine, 'empty', 0, async () => {})
      const empty = await counter.of(() => counter.play('empty', `empty-${n}`))
      const seen = registerTimes(engine, 'steps', n, (ctx, i) => ctx.step('remote', i))
      const cost = await counter.of(() => counter.play('steps', `steps-${n}`))
      return { ...cost, bodies: seen.bodies, beyond: cost.statements - empty.statements }
    }

    // A thousand take a MySQL half a minute; that the cost of a step is constant shows before.
    for (const n of dialect === 'mysql' ? [10, 100] : [10, 100, 1_000]) {
      test(`${n} of them, with live continuations`, async ({ assert }) => {
        const cost = await play(n, {})
        assert.equal(cost.beyond, n * STATEMENTS_A_STEP[dialect])
        assert.isAtMost(cost.beyond, n * STATEMENTS_GATE[dialect])
        assert.equal(cost.rowsRead, n * ROWS_A_STEP)
        assert.isAtMost(cost.rowsRead, n * ROWS_GATE)
        assert.equal(cost.bodies, 1)
      })
        .tags(['@scenario-18'])
        .timeout(3 * MINUTE)
    }

    for (const n of [10, 100]) {
      test(`${n} of them, replayed each time`, async ({ assert }) => {
        const cost = await play(n, false)
        assert.equal(cost.beyond, n * STATEMENTS_A_STEP[dialect])
        assert.equal(cost.rowsRead, n * ROWS_A_STEP)
        assert.isAtMost(cost.bodies, n + 1)
      })
        .tags(['@scenario-18'])
        .timeout(3 * MINUTE)
    }
  })
}
