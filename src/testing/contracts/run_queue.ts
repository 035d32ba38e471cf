/*
 * What every run queue does, as a table without a test runner. Waits are bounded polls; nothing here
 * measures time.
 */
import assert from 'node:assert/strict'
import { systemClock } from '../../foundation/clock.ts'
import { deferred } from '../../foundation/deferred.ts'
import type { RunQueue } from '../../transport/ports.ts'
import type { RunDispatch } from '../../wire/messages.ts'
import { eventually, quietly } from './transport_session.ts'

/** How a case wants a run queue to be. */
export interface RunQueueSettings {
  /** How long it holds a message without a sign of life, and how often it looks for such messages of others. */
  leaseMs?: number
  /** How often a message may silence a consumer before it is dropped. */
  maxStalledCount?: number
  /** Takes messages and gives no sign of life afterwards, as a process that stands still. */
  standsStill?: boolean
  onError?(error: unknown): void
}

/** Opens what each process of a case has: a run queue of its own on the backend of the case. */
export interface RunQueueBench {
  open(settings?: RunQueueSettings): Promise<RunQueue>
}

export interface RunQueueCase {
  title: string
  /** Only for queues that deliver by priority, or whose messages outlive their consumer. */
  needs?: 'priority' | 'leases'
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

/** Long enough for a busy machine to renew in time. */
const LEASE_MS = 600
const LIVE_LEASE_MS = 1_500

/** Consumes, and holds on to the first message. */
async function holding(queue: RunQueue) {
  const gate = deferred()
  const heard: string[] = []
  const stop = queue.onRun('default', async ({ runId }) => {
    heard.push(runId)
    await gate.promise
  })
  await eventually('the pickup', () => heard.length > 0)
  return { finish: () => gate.resolve(undefined), stop, heard }
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
    title: 'a run never reaches another scope, and `*` is one of its own',
    async run({ open }) {
      const queue = await open()
      const eu = listen(queue, 'eu')
      await queue.dispatchRun(message('us 1', { namespace: 'us' }))
      await queue.dispatchRun(message('eu 1', { namespace: 'eu' }), '*')
      await queue.dispatchRun(message('eu 2', { namespace: 'eu' }))
      await eventually('the run of the scope', () => eu.heard.length > 0)
      await quietly()
      assert.deepEqual(eu.ids(), ['eu 2'])
      await eu.stop()
      const operator = listen(queue, '*')
      await queue.dispatchRun(message('us 2', { namespace: 'us' }), '*')
      await eventually('the runs of the operator', () => operator.heard.length >= 2)
      assert.deepEqual(operator.ids().sort(), ['eu 1', 'us 2'])
      await operator.stop()
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
    title: 'a message whose consumer stands still goes to another one',
    needs: 'leases',
    async run({ open }) {
      const still = await open({ leaseMs: LEASE_MS, standsStill: true })
      await still.dispatchRun(message('held'))
      const holder = await holding(still)
      // It takes no more, and does not let go of what it has.
      void holder.stop()
      const heir = listen(await open({ leaseMs: LEASE_MS }))
      await eventually('the takeover', () => heir.heard.length > 0)
      assert.deepEqual(heir.ids(), ['held'])
      await heir.stop()
    },
  },
  {
    title: 'a handler that takes longer than the lease keeps its message',
    needs: 'leases',
    async run({ open }) {
      const live = await open({ leaseMs: LIVE_LEASE_MS })
      await live.dispatchRun(message('held'))
      const began = systemClock()
      const holder = await holding(live)
      const other = listen(await open({ leaseMs: LIVE_LEASE_MS }))
      await eventually('two leases', () => systemClock() - began > 2 * LIVE_LEASE_MS)
      holder.finish()
      await holder.stop()
      await quietly()
      assert.deepEqual([holder.heard, other.ids()], [['held'], []])
      await other.stop()
    },
  },
  {
    title: 'a message that silenced too many consumers is dropped, and reported',
    needs: 'leases',
    async run({ open }) {
      const errors: unknown[] = []
      const onError = (error: unknown) => void errors.push(error)
      const settings = { leaseMs: LEASE_MS, maxStalledCount: 0, onError }
      const still = await open({ ...settings, standsStill: true })
      await still.dispatchRun(message('poison'))
      const holder = await holding(still)
      void holder.stop()
      const queue = await open(settings)
      const heir = listen(queue)
      await eventually('the report', () => errors.length > 0)
      await queue.dispatchRun(message('next'))
      await eventually('the next one', () => heir.heard.length > 0)
      assert.deepEqual(heir.ids(), ['next'])
      await heir.stop()
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
