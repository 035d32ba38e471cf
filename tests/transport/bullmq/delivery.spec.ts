import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import { eventually, quietly } from '../../../src/testing/contracts/transport_session.ts'
import { BullMQTransport, loadBullMQDeps } from '../../../src/transport/bullmq/bullmq_transport.ts'
import { TransportSession } from '../../../src/testing/contracts/transport.ts'
import type { StepResult } from '../../../src/wire/messages.ts'
import { BullBench, redisUrl } from './bench.ts'

const messages = (errors: unknown[]) => errors.map((error) => (error as Error).message)

if (redisUrl) {
  test.group('bullmq | delivery', (group) => {
    group.each.timeout(30_000)

    const producer = (bench: BullBench, name: string, cleanup: TestContext['cleanup']) => {
      const connection = new Redis(redisUrl!, { maxRetriesPerRequest: null })
      const queue = new Queue(`${bench.prefix}-${name}`, { connection })
      cleanup(async () => {
        await queue.close()
        connection.disconnect()
      })
      return queue
    }

    test('a result sent by a peer that allows one attempt is never lost to a refusal', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const session = await bench.session()
      const result: StepResult = {
        runId: 'r',
        seq: 0,
        stepId: 'r:0',
        status: 'completed',
        output: 1,
      }
      session.refusals.set('r:0', 4)
      const results = producer(bench, 'results', cleanup)
      await results.add('result', result, { removeOnComplete: true, removeOnFail: true })
      await eventually('the fifth delivery', () => session.heard(result).length === 5)
      assert.deepEqual(messages(session.errors), ['refused', 'refused', 'refused', 'refused'])
    })

    test('a message that cannot be read is reported and dropped', async ({ assert, cleanup }) => {
      const bench = new BullBench(cleanup)
      const session = await bench.session()
      session.transport.onDecision?.(async () => {})
      session.transport.onStartRun?.(async () => {})
      for (const name of ['results', 'decisions', 'start-run']) {
        await producer(bench, name, cleanup).add(
          'x',
          { nonsense: true },
          { removeOnComplete: true }
        )
      }
      await bench.redis.publish(`${bench.prefix}-heartbeat`, 'not json')
      await eventually('the reports', () => session.errors.length >= 4)
      session.serve('alive', () => 'yes')
      assert.equal(await session.outputOf('alive'), 'yes')
      assert.lengthOf(session.errors, 4)
    })

    test('a task that cannot be read but names its step fails it, to be retried', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const session = await bench.session()
      session.serve('odd', () => null)
      const broken = { runId: 'r', seq: 3, stepId: 'r:3', attempt: 2 }
      const tasks = producer(bench, 'tasks-odd', cleanup)
      await tasks.add('task', broken, { removeOnFail: true })
      await eventually('its result', () => session.heard(broken).length > 0)
      const [result] = session.heard(broken)
      assert.equal(result.status, 'failed')
      assert.match(result.error?.message ?? '', /^remote step worker failed: task\.name is missing/)
      assert.equal(result.error?.retryable, true)
      assert.equal(result.attempt, 2)
    })

    test('a task and a turn on one token are told apart by their shape', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const session = await bench.session()
      const decisions: unknown[] = []
      session.transport.onDecision?.(async (decision) => void decisions.push(decision))
      session.serve('both', () => 'step')
      session.transport.handleWorkflow?.('both', async ({ taskId, runId }) => ({
        taskId,
        runId,
        status: 'completed',
        commands: [],
      }))
      const tasks = producer(bench, 'tasks-both', cleanup)
      const turn = { taskId: 't', runId: 'r', workflow: 'both', history: [], group: 'both' }
      await tasks.add('task', turn, { removeOnComplete: true })
      const task = session.task('both', null)
      await tasks.add('workflow', task, { removeOnComplete: true })
      const { output } = await session.resultOf(task)
      assert.equal(output, 'step')
      await eventually('the decision', () => decisions.length > 0)
      assert.deepEqual(decisions, [{ taskId: 't', runId: 'r', status: 'completed', commands: [] }])
      const beats = session.beats.filter((beat) => beat.stepId === undefined)
      assert.deepInclude(beats[0], { runId: 'r', seq: 0, group: 'both' })
    })

    test('an answer that cannot be sent becomes a failure that says so', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const deps = await loadBullMQDeps()
      let refusals = 1
      const errors: unknown[] = []
      const transport = new BullMQTransport(
        {
          connection: redisUrl!,
          prefix: bench.prefix,
          closeTimeoutMs: 500,
          onError: (error) => errors.push(error),
        },
        {
          ...deps,
          makeQueue: (name, client) => {
            const queue = deps.makeQueue(name, client)
            const add = queue.add.bind(queue)
            queue.add = async (...args) => {
              if (name.endsWith('-results') && refusals-- > 0) throw new Error('too large')
              return add(...args)
            }
            return queue
          },
        }
      )
      cleanup(() => transport.close())
      const session = new TransportSession(transport, 's', errors).listen()
      session.serve('big', () => 'x')
      const result = await session.roundTrip('big', null)
      assert.equal(result.status, 'failed')
      assert.match(result.error?.message ?? '', /^the result could not be sent: .*too large/)
      assert.equal(result.error?.retryable, true)
      // Neither can be sent: the job fails, and its failure is bridged.
      refusals = 2
      const second = await session.roundTrip('big', null)
      assert.match(second.error?.message ?? '', /^remote step worker failed: .*too large/)
      await eventually('the reports', () => errors.length > 0)
    })

    test('a turn that throws comes again', async ({ assert, cleanup }) => {
      const session = await new BullBench(cleanup).session()
      const decisions: { status: string }[] = []
      session.transport.onDecision?.(async (decision) => void decisions.push(decision))
      let attempts = 0
      session.transport.handleWorkflow?.('flaky', async ({ taskId, runId }) => {
        if (++attempts < 3) throw new Error('planned')
        return { taskId, runId, status: 'continue', commands: [] }
      })
      const turn = { taskId: 't', runId: 'r', workflow: 'flaky', workflowVersion: '1', input: null }
      await session.transport.dispatchWorkflowTask?.({
        ...turn,
        history: [],
        group: 'flaky',
        attempt: 1,
      })
      await eventually('the decision', () => decisions.length > 0)
      assert.equal(attempts, 3)
      assert.deepEqual(messages(session.errors), ['planned', 'planned'])
      await session.transport.dispatchWorkflowTask?.({
        ...turn,
        workflow: 'unknown',
        history: [],
        group: 'flaky',
        attempt: 1,
      })
      await eventually('the second decision', () => decisions.length > 1)
      assert.deepInclude(decisions[1], {
        status: 'failed',
        error: { message: 'no workflow unknown', code: 'no_workflow' },
      })
    })

    test('a handler past its ceiling fails to be retried, and is not heard any more', async ({
      assert,
      cleanup,
    }) => {
      const session = await new BullBench(cleanup).session({ stepTimeoutMs: 50 })
      let settle: (value: string) => void = () => {}
      const wedged = new Promise<string>((resolve) => (settle = resolve))
      session.serve('wedged', () => wedged)
      const task = session.task('wedged', null)
      await session.transport.dispatch(task)
      const result = await session.resultOf(task)
      assert.equal(result.status, 'failed')
      assert.deepInclude(result.error, { code: 'step_timeout', retryable: true })
      // The slot is free again.
      session.serve('wedged', () => 'second')
      assert.equal(await session.outputOf('wedged'), 'second')
      settle('late')
      await quietly()
      assert.lengthOf(session.heard(task), 1)
    })
  })
}
