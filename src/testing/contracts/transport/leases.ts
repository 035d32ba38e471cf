/*
 * What happens to tasks whose worker dies, stands still, takes long, or is stopped.
 */
import assert from 'node:assert/strict'
import { systemClock } from '../../../foundation/clock.ts'
import { deferred } from '../../../foundation/deferred.ts'
import type { RemoteTask } from '../../../wire/messages.ts'
import { eventually, type TransportSession } from '../transport_session.ts'
import { shared, type TransportBench, type TransportCase, type TransportSettings } from './case.ts'

/** Long enough for a busy machine to renew in time. */
const LEASE_MS = 600
const LIVE_LEASE_MS = 1_500

/** A worker that took the task and does not let go of it. */
async function holderOf(
  bench: TransportBench,
  { name }: RemoteTask,
  settings: TransportSettings
): Promise<{ session: TransportSession; finish(output: unknown): void }> {
  const session = await bench.session(settings)
  const gate = deferred()
  let taken = false
  session.serve(name, () => {
    taken = true
    return gate.promise
  })
  await eventually('the pickup', () => taken)
  return { session, finish: gate.resolve }
}

const STANDS_STILL = { standsStill: true, leaseMs: LEASE_MS } as const

/** A task whose worker stands still is done by another one; then the worker answers, and reports its loss. */
async function inherited(bench: TransportBench) {
  const engine = await bench.session()
  const task = engine.task('held', 7)
  await engine.transport.dispatch(task)
  const still = await holderOf(bench, task, STANDS_STILL)
  const heir = await bench.session({ leaseMs: LEASE_MS })
  heir.serve('held', (input) => input)
  const result = await engine.resultOf(task)
  still.finish('late')
  await eventually('the report of the lost task', () => still.session.errors.length > 0)
  return { engine, task, heir, result }
}

export const LEASE_CASES: TransportCase[] = [
  shared(
    'a task whose worker stands still is done by another one, whose answer comes first',
    async (bench) => {
      const { result } = await inherited(bench)
      const { status, output } = result
      assert.deepEqual({ status, output }, { status: 'completed', output: 7 })
    },
    { abilities: ['leases'] }
  ),
  shared(
    'what a worker answers that lost its task is dropped',
    async (bench) => {
      const { engine, task, heir } = await inherited(bench)
      heir.serve('next', (input) => input)
      assert.equal(await engine.outputOf('next', 8), 8)
      assert.deepEqual(
        engine.heard(task).map(({ output }) => output),
        [7]
      )
    },
    { abilities: ['leases', 'fence'] }
  ),
  shared(
    'a task that runs longer than its lease stays with a worker that lives',
    async (bench) => {
      const engine = await bench.session()
      const task = engine.task('held', null)
      await engine.transport.dispatch(task)
      const began = systemClock()
      const live = await holderOf(bench, task, { leaseMs: LIVE_LEASE_MS })
      const other = await bench.session({ leaseMs: LIVE_LEASE_MS })
      let others = 0
      other.serve('held', () => void others++)
      await eventually('two leases', () => systemClock() - began > 2 * LIVE_LEASE_MS)
      live.finish('mine')
      const { output } = await engine.resultOf(task)
      assert.equal(output, 'mine')
      assert.equal(others, 0)
    },
    { abilities: ['leases'] }
  ),
  shared(
    'a task that silenced too many workers fails once, and may be retried',
    async (bench) => {
      const settings = { leaseMs: LEASE_MS, maxStalledCount: 1 }
      const engine = await bench.session({ ...settings, concurrency: 1 })
      // Busy with something else, and so no heir for now: it lives and looks for silent workers.
      const busy = deferred()
      const runs: unknown[] = []
      engine.serve('held', async (input) => {
        runs.push(input)
        if (input === 'blocker') await busy.promise
      })
      const blocker = engine.task('held', 'blocker')
      await engine.transport.dispatch(blocker)
      await eventually('the blocker', () => runs.length === 1)
      const poison = engine.task('held', 'poison')
      await engine.transport.dispatch(poison)
      for (let victims = 0; victims < 2; victims++) {
        await holderOf(bench, poison, { ...settings, standsStill: true })
      }
      busy.resolve(undefined)
      const { status, error } = await engine.resultOf(poison)
      assert.equal(status, 'failed')
      assert.match(String(error?.message), /^remote step worker failed: /)
      assert.notEqual(error?.retryable, false)
      assert.deepEqual(runs, ['blocker'])
      await engine.transport.dispatch({ ...poison, attempt: 2 })
      await eventually('the retry', () => engine.heard(poison).length > 1)
      assert.deepEqual(
        engine.heard(poison).map((result) => result.status),
        ['failed', 'completed']
      )
    },
    { abilities: ['leases', 'concurrency'] }
  ),
  shared(
    'close hands what still runs to another worker at once, and that does not count',
    async (bench) => {
      const settings = { maxStalledCount: 0 }
      const engine = await bench.session()
      const task = engine.task('held', 7)
      await engine.transport.dispatch(task)
      const stopped = await holderOf(bench, task, settings)
      await stopped.session.transport.close?.()
      const heir = await bench.session(settings)
      heir.serve('held', (input) => input)
      const { status, output } = await engine.resultOf(task)
      assert.deepEqual({ status, output }, { status: 'completed', output: 7 })
      stopped.finish('late')
      await engine.outputOf('held', 8)
      assert.equal(engine.heard(task).length, 1)
    },
    { abilities: ['leases'] }
  ),
]
