/*
 * Who holds a job: a worker that lives keeps it, one that is silent loses it, one that closes gives it
 * back, and none of that costs an answer.
 */
import { test } from '@japa/runner'
import { deferred } from '../../../src/foundation/deferred.ts'
import { eventually, quietly } from '../../../src/testing/contracts/transport_session.ts'
import type { QueueJob } from '../../../src/transport/queue/queue_transport.ts'
import { altered } from '../../helpers/altered.ts'
import { STANDING_STILL } from '../standing_still.ts'
import { ADAPTERS, QueueBench, dropDatabases } from './bench.ts'

const messages = (errors: unknown[]) => errors.map((error) => (error as Error).message)

for (const behind of ADAPTERS) {
  test.group(`queue on ${behind} | claims`, (group) => {
    group.each.timeout(30_000)
    group.teardown(dropDatabases)

    test('a claim that was lost is reported, its answer sent and its job left alone', async ({
      assert,
      cleanup,
    }) => {
      const bench = await QueueBench.open(cleanup, behind)
      const engine = await bench.session({
        stalledThresholdMs: 300,
        stalledCheckIntervalMs: 100,
        closeTimeoutMs: 0,
      })
      const slow = await bench.session({ stalledThresholdMs: 300, timers: STANDING_STILL })
      const [picked, first, second] = [deferred(), deferred(), deferred()]
      slow.serve('work', async () => {
        picked.resolve(undefined)
        await first.promise
        return 'the slow one'
      })
      const task = engine.task('work', null)
      await engine.transport.dispatch(task)
      await picked.promise
      // The sweep goes over queues that are consumed.
      let again = false
      engine.serve('work', async () => {
        again = true
        await second.promise
        return 'the other one'
      })
      await eventually('the takeover', () => again)
      first.resolve(undefined)
      const result = await engine.resultOf(task)
      assert.equal(result.output, 'the slow one')
      await eventually('the report', () => slow.errors.length > 0)
      assert.match(messages(slow.errors)[0], /^lost 1 of 1 claim\(s\) on .*:tasks:work: /)
      assert.equal((slow.errors[0] as { code: string }).code, 'claims_lost')
      second.resolve(undefined)
      await eventually('the second answer', () => engine.heard(task).length === 2)
      const adapter = await bench.adapter()
      assert.isNull(await adapter.popFrom(`${bench.prefix}:tasks:work`))
    })

    test('closing gives back at once, and counts neither a stall nor anything else', async ({
      assert,
      cleanup,
    }) => {
      const bench = await QueueBench.open(cleanup, behind)
      const engine = await bench.session()
      const task = engine.task('work', null)
      await engine.transport.dispatch(task)
      for (let life = 0; life < 5; life++) {
        const worker = await bench.session({ maxStalledCount: 0, closeTimeoutMs: 0 })
        const picked = deferred()
        worker.serve('work', () => {
          picked.resolve(undefined)
          return new Promise(() => {})
        })
        await picked.promise
        await worker.transport.close!()
        assert.deepEqual(worker.errors, [])
      }
      const adapter = await bench.adapter()
      const job = await adapter.popFrom(`${bench.prefix}:tasks:work`)
      assert.equal(job?.stalledCount ?? 0, 0)
      await adapter.retryJob(job!.id, `${bench.prefix}:tasks:work`)
      engine.serve('work', () => 'done')
      const { output } = await engine.resultOf(task)
      assert.equal(output, 'done')
    })

    test('a turn and a run hint that silence their workers are dropped, and reported', async ({
      assert,
      cleanup,
    }) => {
      const bench = await QueueBench.open(cleanup, behind)
      const { prefix } = bench
      const session = await bench.session({ maxStalledCount: 0, stalledCheckIntervalMs: 20 })
      const turn = { workflow: 'w', workflowVersion: '1', input: null, history: [], group: 'w' }
      await session.transport.dispatchWorkflowTask!({
        ...turn,
        taskId: 't1',
        runId: 'r1',
        attempt: 1,
      })
      await session.transport.dispatchRun!({ runId: 'r2', reason: 'start', at: 1 })
      const dead = await bench.adapter()
      dead.setWorkerId('dead')
      const queues = [`${prefix}:tasks:w`, `${prefix}:runs:default`]
      for (const queue of queues) {
        await dead.popFrom(queue)
        await quietly()
        // The clock of an adapter is that of the system: stalled is what is older than nothing.
        while ((await dead.recoverStalledJobs!(queue, -1, 5)) === 0);
      }
      const ran: string[] = []
      session.transport.handleWorkflow!('w', async ({ taskId, runId }) => {
        ran.push(taskId)
        return { taskId, runId, status: 'continue', commands: [] }
      })
      session.transport.onRun!('default', async ({ runId }) => void ran.push(runId))
      await eventually('both reports', () => session.errors.length >= 2)
      assert.deepEqual(ran, [])
      assert.sameMembers(messages(session.errors), [
        'queue: the turn t1 on a queue of tasks is dropped: stalled more than 0 times',
        'queue: the message of run r2 is dropped: it stalled more than 0 times',
      ])
      for (const queue of queues) assert.equal(await dead.sizeOf(queue), 0)
    })
  })
}

test.group('queue | adapters of other releases', (group) => {
  group.each.timeout(30_000)
  group.teardown(dropDatabases)

  test('one that renews no claims is said once, and takes nothing for lost before 30 minutes')
    .with(['missing', 'throwing'] as const)
    .run(async ({ assert, cleanup }, kind) => {
      const bench = await QueueBench.open(cleanup, 'sqlite')
      const real = await bench.adapter()
      const thresholds: number[] = []
      const adapter = altered(real, {
        renewJobs:
          kind === 'missing'
            ? undefined
            : async () => {
                throw new Error('not supported')
              },
        recoverStalledJobs: async (queue, threshold, bound) => {
          thresholds.push(threshold)
          return real.recoverStalledJobs!(queue, threshold, bound)
        },
      })
      const session = await bench.session({
        adapter,
        stalledThresholdMs: 40,
        stalledCheckIntervalMs: 20,
      })
      session.serve('long', async () => {
        await eventually('some sweeps', () => thresholds.length > 8)
        return 'once'
      })
      const task = session.task('long', null)
      await session.transport.dispatch(task)
      const { output } = await session.resultOf(task)
      assert.equal(output, 'once')
      assert.lengthOf(session.errors, 1)
      assert.match(messages(session.errors)[0], /renews no claims: .*after 1800000ms/)
      assert.deepEqual([...new Set(thresholds)], [30 * 60_000])
    })

  test('a job that it reports as given up fails its step, to be retried', async ({
    assert,
    cleanup,
  }) => {
    const bench = await QueueBench.open(cleanup, 'sqlite')
    const real = await bench.adapter()
    const failed: QueueJob[] = []
    const adapter = altered(real, {
      recoverStalledJobs: async (queue) =>
        queue.endsWith(':tasks:gone') ? { recovered: 0, failed: failed.splice(0) } : 0,
    })
    const session = await bench.session({ adapter, stalledCheckIntervalMs: 20 })
    const task = session.task('gone', null, { attempt: 2 })
    session.serve('gone', () => 'never')
    failed.push({ id: 'j', name: 'task', payload: task, attempts: 0 })
    const result = await session.resultOf(task)
    assert.equal(result.status, 'failed')
    assert.deepEqual(result.error, {
      message: 'remote step worker failed: stalled more than 3 times',
      code: 'stalled',
      retryable: true,
    })
    assert.equal(result.attempt, 2)
  })
})
