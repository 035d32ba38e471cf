/*
 * What is on the queues: names and payloads, as a peer in another process or language finds them.
 */
import { test } from '@japa/runner'
import { eventually } from '../../../src/testing/contracts/transport_session.ts'
import { newJob } from '../../../src/transport/queue/adapter.ts'
import { ADAPTERS, QueueBench, dropDatabases } from './bench.ts'

const messages = (errors: unknown[]) => errors.map((error) => (error as Error).message)

for (const behind of ADAPTERS) {
  test.group(`queue on ${behind} | wire`, (group) => {
    group.each.timeout(30_000)
    group.teardown(dropDatabases)

    test('every message is a job of its name on the queue of its kind', async ({
      assert,
      cleanup,
    }) => {
      const bench = await QueueBench.open(cleanup, behind)
      const pod = await bench.transport({ namespace: 'eu', instanceId: 'pod' })
      const base = { runId: 'a:1', seq: 2, input: { n: 1 }, attempt: 1 }
      const task = { ...base, name: 'x:y', stepId: 'a:1:2', group: 'x-y', priority: 9 }
      await pod.dispatch(task)
      await pod.dispatchRun({ runId: 'a:1', namespace: 'eu', reason: 'start', at: 5, priority: 1 })
      await pod.dispatchStartRun({ tenant: 't', workflow: 'w', input: null, runId: 'r' })
      const event = { runId: 'r', seq: 1, name: 'p', phase: 'running', startedAt: 3 } as const
      await pod.dispatchStepEvent(event)
      pod.onRunReply(() => {})
      const p = `${bench.prefix}-eu`
      const adapter = await bench.adapter()
      await adapter.pushOn('other', newJob('x', {}))
      const expected = [
        [`${p}:tasks:x-y`, 'task', task, 1],
        [`${bench.prefix}:runs:eu`, 'run', { runId: 'a:1', namespace: 'eu' }, 4],
        [`${p}:start-run`, 'startRun', { tenant: 't', workflow: 'w', replyTo: 'pod' }, undefined],
        [`${p}:step-events`, 'stepEvent', event, undefined],
        [`${p}:inbox-registrations`, 'inbox', { instanceId: 'pod', tenants: [] }, undefined],
      ] as const
      for (const [queue, name, payload, priority] of expected) {
        let size = 0
        while (size === 0) size = await adapter.sizeOf(queue)
        const job = await adapter.popFrom(queue)
        assert.equal(job?.name, name)
        assert.containsSubset(job?.payload, payload)
        assert.equal(job?.priority, priority)
        assert.match(job!.id, /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
        await adapter.completeJob(job!.id, queue)
      }
    })

    test('payloads of peers may be text; what cannot be read is reported, a step fails', async ({
      assert,
      cleanup,
    }) => {
      const bench = await QueueBench.open(cleanup, behind)
      const session = await bench.session()
      session.serve('odd', (input) => input)
      const adapter = await bench.adapter()
      const { prefix } = bench
      const push = (queue: string, payload: unknown) =>
        adapter.pushOn(`${prefix}:${queue}`, { ...newJob('x', {}), payload })
      const task = session.task('odd', 'as text')
      await push('tasks:odd', JSON.stringify(task))
      await push('tasks:odd', { runId: 'r', seq: 3, stepId: 'r:3', attempt: 2 })
      await push('tasks:odd', 'not json')
      await push('results', { nonsense: true })
      await push('heartbeats', 'not json')
      const { output } = await session.resultOf(task)
      assert.equal(output, 'as text')
      await eventually('the failure', () => session.heard({ stepId: 'r:3' }).length > 0)
      const [{ error, attempt }] = session.heard({ stepId: 'r:3' })
      assert.match(error?.message ?? '', /^remote step worker failed: task\.name is missing/)
      assert.deepEqual([error?.retryable, attempt], [true, 2])
      await eventually('the reports', () => session.errors.length >= 3)
      assert.lengthOf(messages(session.errors), 3)
    })

    test('urgency has ten levels, and jobs that are alike keep their order', async ({
      assert,
      cleanup,
    }) => {
      const bench = await QueueBench.open(cleanup, behind)
      const session = await bench.session({ deferred: true })
      const order: unknown[] = []
      session.serve('paced', (input) => void order.push(input))
      const tasks = [undefined, 2, 4, 2, -3, undefined].map((priority, index) =>
        session.task('paced', index, priority === undefined ? {} : { priority })
      )
      for (const task of tasks) await session.transport.dispatch(task)
      session.transport.startConsumers!()
      for (const task of tasks) await session.resultOf(task)
      assert.deepEqual(order, [2, 1, 3, 0, 5, 4])
    })
  })
}
