import { test } from '@japa/runner'
import { encode } from '../../../src/wire/codec.ts'
import type { RemoteTask, WorkflowTask } from '../../../src/wire/messages.ts'
import { BullBench, redisUrl } from './bench.ts'

const step = (more: Partial<RemoteTask> = {}): RemoteTask => ({
  runId: 'run-1',
  seq: 2,
  name: 'charge',
  stepId: 'run-1:2',
  group: 'charge',
  input: { cents: 7, ü: [null] },
  attempt: 1,
  ...more,
})

const turn: WorkflowTask = {
  taskId: 'run-1:wf:00c0ffee',
  runId: 'run-1',
  workflow: 'ship',
  workflowVersion: '1',
  input: null,
  history: [],
  group: 'ship',
  attempt: 1,
}

if (redisUrl) {
  test.group('bullmq | on the wire', () => {
    test('the message is the data of the job, byte for byte', async ({ assert, cleanup }) => {
      const bench = new BullBench(cleanup)
      const transport = await bench.transport()
      await transport.dispatch(step())
      await transport.dispatchWorkflowTask(turn)
      const [task] = await bench.jobs(`${bench.prefix}-tasks-charge`)
      assert.equal(task.name, 'task')
      assert.equal(task.data, encode('task', step()))
      const options = JSON.parse(task.opts) as Record<string, unknown>
      assert.deepInclude(options, { removeOnComplete: true, removeOnFail: { age: 86400 } })
      assert.notProperty(options, 'priority')
      const [work] = await bench.jobs(`${bench.prefix}-tasks-ship`)
      assert.equal(work.name, 'workflow')
      assert.equal(work.data, encode('workflow', turn))
      assert.deepInclude(JSON.parse(work.opts), { removeOnComplete: true, removeOnFail: true })
    })

    test('urgency is turned round, and kept within what BullMQ takes', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const transport = await bench.transport()
      const priorities = [0, 10, -10, 2.4, 1e9, -1e9]
      for (const [seq, priority] of priorities.entries()) {
        await transport.dispatch(step({ seq, stepId: `run-1:${seq}`, priority }))
      }
      const jobs = await bench.jobs(`${bench.prefix}-tasks-charge`)
      const given = Object.fromEntries(
        jobs.map((job) => {
          const { seq } = JSON.parse(job.data) as RemoteTask
          return [priorities[seq], Number(job.priority)]
        })
      )
      assert.deepEqual(given, {
        '0': 1_048_576,
        '10': 1_048_566,
        '-10': 1_048_586,
        '2.4': 1_048_574,
        '1000000000': 1,
        '-1000000000': 2_097_151,
      })
    })

    test('one job for each attempt of a step, whatever its ids look like', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const transport = await bench.transport()
      const ids = ['12345', 'a:b:c', '0:1', 'ü☕\u{1F600}', 'x'.repeat(255), 'a b/*[?]']
      for (const runId of ids) {
        const task = step({ runId, stepId: `${runId}:2` })
        await transport.dispatch(task)
        await transport.dispatch(task)
      }
      const jobs = await bench.jobs(`${bench.prefix}-tasks-charge`)
      const runIds = jobs.map((job) => (JSON.parse(job.data) as RemoteTask).runId)
      assert.deepEqual(runIds.sort(), [...ids].sort())
      await transport.dispatch(step({ runId: '12345', stepId: '12345:2', attempt: 2 }))
      assert.lengthOf(await bench.jobs(`${bench.prefix}-tasks-charge`), ids.length + 1)
    })

    test('a task that was answered can be sent again', async ({ assert, cleanup }) => {
      const session = await new BullBench(cleanup).session()
      session.serve('charge', () => 'done')
      const task = session.task('charge', null)
      await session.transport.dispatch(task)
      await session.resultOf(task)
      // The lock and the job go a moment after the answer.
      while (session.heard(task).length < 2) await session.transport.dispatch(task)
      assert.isAtLeast(session.heard(task).length, 2)
    })

    test('a namespaced transport carries its own pool and refuses others', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const session = await bench.session({ namespace: 'acme' })
      session.serve('charge', () => 'bare')
      session.serve('mail@work', () => 'at')
      assert.equal(await session.outputOf('charge', null, { group: 'charge@acme' }), 'bare')
      assert.equal(await session.outputOf('charge', null), 'bare')
      assert.equal(await session.outputOf('mail@work', null, { group: 'mail@work' }), 'at')
      const health = await session.transport.groupHealth?.('charge@acme')
      assert.lengthOf(health?.liveWorkers ?? [], 1)
      const foreign = session.task('charge', null, { group: 'charge@other' })
      await assert.rejects(
        () => session.transport.dispatch(foreign),
        /pool "other".*namespace "acme".*namespace: 'default'/
      )
      await assert.rejects(
        async () => session.transport.dispatchWorkflowTask?.({ ...turn, group: 'ship@other' }),
        /pool "other"/
      )
      const bare = await bench.transport()
      await bare.dispatch({ ...foreign, name: 'charge' })
      assert.lengthOf(await bench.jobs(`${bench.prefix}-tasks-charge@other`), 1)
    })

    test('a namespace cannot change under handlers that consume', async ({ assert, cleanup }) => {
      const transport = await new BullBench(cleanup).transport()
      transport.useNamespace('one')
      transport.useNamespace('two')
      transport.handle('charge', () => null)
      transport.useNamespace('two')
      assert.throws(() => transport.useNamespace('three'), /once handlers are registered/)
      assert.throws(() => transport.useNamespace('a:b'), /without ':'/)
    })
  })
}
