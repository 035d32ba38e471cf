/*
 * What every run queue does, as a table without a test runner. Waits are bounded polls; nothing here
 * measures time.
 */
import assert from 'node:assert/strict'
import { deferred } from '../../foundation/deferred.ts'
import type { RunQueue } from '../../transport/ports.ts'
import type { RunDispatch } from '../../wire/messages.ts'
import { eventually, quietly } from './transport_session.ts'

/** Opens what each process of a case has: a run queue of its own on the backend of the case. */
export interface RunQueueBench {
  open(): Promise<RunQueue>
}

export interface RunQueueCase {
  title: string
  /** Only for queues that deliver by priority. */
  needs?: 'priority'
  run(bench: RunQueueBench): Promise<void>
}

const message = (runId: string, more: Partial<RunDispatch> = {}): RunDispatch => ({
  runId,
  namespace: 'default',
  reason: 'start',
  at: 1_767_225_600_000,
  ...more,
})

/** Consumes a scope and notes what it is given. */
function listen(queue: RunQueue, scope = 'default') {
  const heard: RunDispatch[] = []
  const stop = queue.onRun(scope, async (run) => void heard.push(run))
  return { heard, stop, ids: () => heard.map(({ runId }) => runId) }
}

export const RUN_QUEUE_CASES: readonly RunQueueCase[] = [
  {
    title: 'a dispatched run reaches one consumer of its scope, and only one',
    async run({ open }) {
      const [producer, ...consumers] = await Promise.all([open(), open(), open()])
      const listeners = consumers.map((consumer) => listen(consumer))
      const runIds = Array.from({ length: 20 }, (_, i) => `run ${i}`)
      for (const runId of runIds) await producer.dispatchRun(message(runId))
      const all = () => listeners.flatMap(({ ids }) => ids())
      await eventually('every run', () => all().length >= runIds.length)
      await quietly()
      assert.deepEqual(all().sort(), runIds.sort())
      for (const { stop } of listeners) await stop()
    },
  },
  {
    title: 'a run never reaches another scope, and `*` is every scope',
    async run({ open }) {
      const queue = await open()
      const eu = listen(queue, 'eu')
      await queue.dispatchRun(message('us 1', { namespace: 'us' }))
      await queue.dispatchRun(message('eu 1', { namespace: 'eu' }))
      await eventually('the run of the scope', () => eu.heard.length > 0)
      await quietly()
      assert.deepEqual(eu.ids(), ['eu 1'])
      await eu.stop()
      const everything = listen(queue, '*')
      await queue.dispatchRun(message('eu 2', { namespace: 'eu' }))
      await eventually('both scopes', () => everything.heard.length >= 2)
      assert.deepEqual(everything.ids().sort(), ['eu 2', 'us 1'])
      await everything.stop()
    },
  },
  {
    title: 'a run that is dispatched before anybody consumes is delivered later',
    async run({ open }) {
      const queue = await open()
      await queue.dispatchRun(message('early'))
      const consumer = await open()
      const { ids, heard, stop } = listen(consumer)
      await eventually('the early run', () => heard.length > 0)
      assert.deepEqual(ids(), ['early'])
      await stop()
    },
  },
  {
    title: 'a handler that throws gets its message again',
    async run({ open }) {
      const queue = await open()
      let attempts = 0
      const stop = queue.onRun('default', async () => {
        attempts += 1
        if (attempts === 1) throw new Error('planned')
      })
      await queue.dispatchRun(message('again'))
      await eventually('the second attempt', () => attempts === 2)
      await quietly()
      assert.equal(attempts, 2)
      await stop()
    },
  },
  {
    title: 'stopping waits for handlers in flight, and nothing is consumed afterwards',
    async run({ open }) {
      const queue = await open()
      const gate = deferred()
      const heard: string[] = []
      const stop = queue.onRun('default', async ({ runId }) => {
        heard.push(runId)
        await gate.promise
      })
      await queue.dispatchRun(message('in flight'))
      await eventually('the pickup', () => heard.length > 0)
      let stopped = false
      const stopping = stop().then(() => (stopped = true))
      await quietly()
      assert.equal(stopped, false)
      gate.resolve(undefined)
      await stopping
      await queue.dispatchRun(message('left'))
      await quietly()
      assert.deepEqual(heard, ['in flight'])
      const next = listen(queue)
      await eventually('what was left', () => next.heard.length > 0)
      assert.deepEqual(next.ids(), ['left'])
      await next.stop()
    },
  },
  {
    title: 'a second consumer of a scope in one process takes nothing twice',
    async run({ open }) {
      const queue = await open()
      const listeners = [listen(queue), listen(queue)]
      await queue.dispatchRun(message('once'))
      const all = () => listeners.flatMap(({ ids }) => ids())
      await eventually('the run', () => all().length > 0)
      await quietly()
      assert.deepEqual(all(), ['once'])
      for (const { stop } of listeners) await stop()
    },
  },
  {
    title: 'reason, priority, namespace and time survive the trip',
    async run({ open }) {
      const [producer, consumer] = await Promise.all([open(), open()])
      const { heard, stop } = listen(consumer, 'eu')
      const sent = message('ü:7 / x', { namespace: 'eu', reason: 'resume', priority: 3 })
      await producer.dispatchRun(sent)
      await eventually('the run', () => heard.length > 0)
      assert.deepEqual({ ...heard[0] }, sent)
      await stop()
    },
  },
  {
    title: 'a run that is dispatched twice is not lost',
    async run({ open }) {
      const queue = await open()
      await queue.dispatchRun(message('twice'))
      await queue.dispatchRun(message('twice'))
      const { ids, heard, stop } = listen(queue)
      await eventually('the run', () => heard.length > 0)
      await quietly()
      assert.deepEqual([...new Set(ids())], ['twice'])
      await stop()
    },
  },
  {
    title: 'the higher priority is delivered first',
    needs: 'priority',
    async run({ open }) {
      const queue = await open()
      for (const priority of [1, 5, 3]) {
        await queue.dispatchRun(message(`priority ${priority}`, { priority }))
      }
      const { ids, heard, stop } = listen(queue)
      await eventually('all three', () => heard.length >= 3)
      assert.deepEqual(ids(), ['priority 5', 'priority 3', 'priority 1'])
      await stop()
    },
  },
]
