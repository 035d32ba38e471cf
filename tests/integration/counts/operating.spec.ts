/*
 * What operating and looking cost: run detail by the number of fans, not of members; bulk verbs by the
 * number of runs, in batches.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import type { WorkflowRun } from '../../../src/types/run.ts'
import type { World } from '../../helpers/engines.ts'
import { childRow, stepRow } from '../../insight/rows.ts'
import { countedStores, useCounting } from './rig.ts'

const ended = (world: World, id: string, fields: Partial<WorkflowRun> = {}): WorkflowRun => ({
  id,
  workflow: 'w',
  workflowVersion: '1',
  status: 'completed',
  input: null,
  output: 1,
  turns: 1,
  createdAt: new Date(world.time.now),
  updatedAt: new Date(world.time.now),
  ...fields,
})

async function createMany(world: World, count: number, fields: Partial<WorkflowRun> = {}) {
  for (let i = 0; i < count; i++) await world.store.createRun(ended(world, `r${i}`, fields))
}

for (const kind of await countedStores()) {
  test.group(`what operating costs | ${kind.name}`, (group) => {
    const counting = useCounting(group, kind)
    const { world } = counting

    async function statementsOf(engine: WorkflowEngine, work: () => Promise<unknown>) {
      const counter = counting.counter(engine)
      const { statements } = await counter.of(work)
      counter.stop()
      return statements
    }

    test('a summarized detail asks as much for a fan of 50 steps as for one of 1,500', async ({
      assert,
    }) => {
      const engine = counting.engine()
      const costs: number[] = []
      for (const size of [50, 1500]) {
        const runId = `fan of ${size}`
        await world.store.createRun(ended(world, runId))
        const wide = { runId, parallelGroup: 'all:0' }
        for (let i = 0; i < size; i++) await world.store.saveCheckpoint(stepRow(i, wide))
        let etag: string | undefined
        const cost = await statementsOf(engine, async () => {
          const detail = await engine.getRunDetail(runId, { summarizeFansOver: 10 })
          await engine.getFanMembers(runId, 'all:0', { limit: 10 })
          etag = detail!.etag
        })
        costs.push(cost)
        const options = { summarizeFansOver: 10, ifNoneMatch: etag }
        const again = await statementsOf(engine, () => engine.getRunDetail(runId, options))
        assert.equal(again, 2)
      }
      assert.deepEqual(costs, [8, 8])
    }).timeout(60_000)

    test('a fan of children is read a page of 500 at a time', async ({ assert }) => {
      const engine = counting.engine()
      await world.store.createRun(ended(world, 'r'))
      for (let i = 0; i < 1200; i++) {
        const done = { ok: true as const, value: i }
        await world.store.saveCheckpoint(childRow(i, `c${i}`, done, { parallelGroup: 'all:0' }))
      }
      const look = () => engine.getRunDetail('r', { summarizeFansOver: 10 })
      assert.isAtMost(await statementsOf(engine, look), 4 + 3)
    }).timeout(60_000)

    test('a purge costs a handful of statements for each batch', async ({ assert }) => {
      const engine = counting.engine()
      await createMany(world, 300)
      let gone = 0
      const cost = await statementsOf(engine, async () => {
        gone = await engine.purgeRuns({ workflow: 'w' })
      })
      assert.equal(gone, 300)
      // Four listings; a batch is one transaction of four deletes, and the buffers.
      assert.isAtMost(cost, 4 + 3 * 10)
    }).timeout(60_000)

    test('deleting a subtree costs one look for each run of it', async ({ assert }) => {
      const engine = counting.engine()
      const costs: number[] = []
      for (const size of [100, 400]) {
        await createMany(world, size)
        await world.store.createRun(ended(world, 'p'))
        for (let i = 0; i < size; i++) {
          const done = { ok: true as const, value: 1 }
          await world.store.saveCheckpoint(childRow(i, `r${i}`, done, { runId: 'p' }))
        }
        costs.push(await statementsOf(engine, () => engine.deleteRun('p')))
        assert.equal(await world.store.countRuns({}), 0)
      }
      assert.isAtMost(costs[0], 100 + 40)
      assert.isAtMost(costs[1], 400 + 80)
    }).timeout(60_000)

    test('a bulk cancel costs as much for each of 300 runs as for each of 100', async ({
      assert,
    }) => {
      const costs: number[] = []
      for (const size of [100, 300]) {
        const filter = { workflow: `w${size}` }
        await createMany(world, size, { ...filter, status: 'suspended', output: undefined })
        const engine = counting.engine()
        const cost = await statementsOf(engine, () => engine.cancelWhere(filter))
        assert.equal(await world.store.countRuns({ ...filter, status: 'cancelled' }), size)
        costs.push(cost / size)
        await engine.purgeRuns(filter)
      }
      assert.isAtMost(costs[0], 8)
      assert.closeTo(costs[1], costs[0], 0.5)
    }).timeout(60_000)

    test('sending a fan of steps again writes its rows in batches', async ({ assert }) => {
      const engine = counting.engine({ transport: 'held' })
      await world.store.createRun(ended(world, 'r', { status: 'suspended' }))
      const open = { runId: 'r', status: 'pending', parallelGroup: 'all:0' } as const
      for (let i = 0; i < 1000; i++) await world.store.saveCheckpoint(stepRow(i, open))
      const cost = await statementsOf(engine, () => engine.redispatchPending('r'))
      assert.lengthOf(world.held.sent, 1000)
      assert.isAtMost(cost, 14)
    }).timeout(60_000)
  })
}
