/*
 * What a thousand dispatched steps cost: per step a constant number of statements, rows and body
 * executions, whatever came before.
 */
import { test } from '@japa/runner'
import { countStatements } from '../helpers/databases.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const STEPS = 1000
const WINDOW = 100

for (const kind of await storesUnderTest()) {
  if (kind.dialect === 'postgres') continue

  test.group(`Many steps | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    /** Runs a body of many steps; answers what each window of steps cost. */
    const cost = async (steps: number, continuations: false | object) => {
      const engine = world.engine({ continuations })
      const gate = world.gate(engine)
      const { database } = world.opened
      const statements = database && countStatements(database.db)
      let rowsRead = 0
      for (const member of [
        'listCheckpointsAt',
        'listCheckpointsForReplay',
        'listCheckpoints',
      ] as const) {
        gate.around(member, async (proceed) => {
          const rows = await proceed()
          rowsRead += (rows as unknown[]).length
          return rows
        })
      }
      let bodies = 0
      let bodySteps = 0
      const windows: { calls: number; statements: number; rows: number }[] = []
      const calls = () => [...gate.calls.values()].reduce((sum, n) => sum + n, 0)
      let last = { calls: 0, statements: 0, rows: 0 }
      engine.handle('add', (input) => {
        const i = input as number
        if (i % WINDOW === WINDOW - 1) {
          const now = { calls: calls(), statements: statements?.count ?? 0, rows: rowsRead }
          windows.push({
            calls: now.calls - last.calls,
            statements: now.statements - last.statements,
            rows: now.rows - last.rows,
          })
          last = now
        }
        return i + 1
      })
      engine.register('w', '1', async (ctx, n: number) => {
        bodies += 1
        let value = 0
        while (value < n) {
          bodySteps += 1
          value = await ctx.step<number>('add', value)
        }
        return value
      })
      await engine.start('w', steps, 'r')
      const end = await engine.waitForRun('r', { terminal: true })
      statements?.stop()
      return { end, windows: windows.slice(1), bodies, bodySteps }
    }

    const isFlat = (numbers: number[]) => Math.max(...numbers) - Math.min(...numbers) <= WINDOW / 10

    test('a live body executes once, and every step costs the same', async ({ assert }) => {
      const { end, windows, bodies, bodySteps } = await cost(STEPS, {})
      assert.deepEqual(end, { runId: 'r', status: 'completed', output: STEPS })
      assert.equal(bodies, 1)
      assert.equal(bodySteps, STEPS)
      assert.isTrue(isFlat(windows.map((window) => window.calls)), JSON.stringify(windows))
      assert.isTrue(isFlat(windows.map((window) => window.statements)), JSON.stringify(windows))
      // One open row per turn, and none that was answered before.
      for (const { rows } of windows) assert.isAtMost(rows, 2 * WINDOW)
    })
      .tags(['@scenario-18'])
      .timeout(60_000)
      .skip(!kind.complete, 'fallbacks read full listings')

    test('a replayed body reads no more rows per step either', async ({ assert }) => {
      const steps = 300
      const { end, windows, bodies } = await cost(steps, false)
      assert.deepEqual(end, { runId: 'r', status: 'completed', output: steps })
      assert.equal(bodies, steps + 1)
      assert.isTrue(isFlat(windows.map((window) => window.calls)), JSON.stringify(windows))
      assert.isTrue(isFlat(windows.map((window) => window.statements)), JSON.stringify(windows))
      for (const { rows } of windows) assert.isAtMost(rows, 2 * WINDOW)
    })
      .timeout(60_000)
      .skip(!kind.complete, 'fallbacks read full listings')
      .tags(['@scenario-18', '@race-55'])

    test('a store completed by fallbacks gets there too', async ({ assert }) => {
      const { end, bodies } = await cost(200, {})
      assert.deepEqual(end, { runId: 'r', status: 'completed', output: 200 })
      assert.isAtLeast(bodies, 1)
    }).timeout(60_000)

    test('a thousand steps at once are one wave: sent together, answered in any order', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx, n: number) => {
        const all = await Promise.all(
          Array.from({ length: n }, (_, i) => ctx.step<number>('add', i))
        )
        return all.reduce((sum, value) => sum + value, 0)
      })
      const n = kind.complete ? STEPS : 100
      await engine.start('w', n, 'r')
      await world.parked('r')
      assert.lengthOf(world.held.sent, n)
      const before = [...world.gate(engine).calls.entries()]
      assert.isAtMost(before.find(([name]) => name === 'commitTurn')?.[1] ?? 0, 3)
      const order = world.held.sent.toSorted((a, b) => (a.seq % 7) - (b.seq % 7))
      await Promise.all(order.map((task) => world.held.complete(task, task.input)))
      assert.equal(await world.output('r'), (n * (n - 1)) / 2)
    }).timeout(60_000)
  })
}
