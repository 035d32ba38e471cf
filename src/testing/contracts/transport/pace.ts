/*
 * How much at once, and what first.
 */
import assert from 'node:assert/strict'
import { systemClock } from '../../../foundation/clock.ts'
import { deferred } from '../../../foundation/deferred.ts'
import type { RemoteTask } from '../../../wire/messages.ts'
import { eventually, type TransportSession, working } from '../transport_session.ts'
import { fresh, type TransportCase } from './case.ts'

/** How many run, and the most that ever did. */
class Gauge {
  running = 0
  most = 0

  async run(work: () => Promise<unknown>): Promise<void> {
    this.most = Math.max(this.most, ++this.running)
    await work()
    this.running--
  }
}

const tasksOf = (session: TransportSession, count: number, more?: Partial<RemoteTask>) =>
  Array.from({ length: count }, (_, index) => session.task('paced', index, more))

async function answered(session: TransportSession, tasks: RemoteTask[]): Promise<void> {
  for (const task of tasks) await session.resultOf(task)
}

/** Dispatched one after the other, each in a millisecond of its own. */
async function dispatched(session: TransportSession, tasks: RemoteTask[]): Promise<void> {
  for (const task of tasks) {
    const at = systemClock()
    await session.transport.dispatch(task)
    await eventually('the next millisecond', () => systemClock() > at)
  }
}

/** The inputs in the order in which one worker runs these. */
async function orderOf(session: TransportSession, tasks: RemoteTask[]): Promise<unknown[]> {
  await dispatched(session, tasks)
  const order: unknown[] = []
  session.serve('paced', (input) => void order.push(input))
  await answered(session, tasks)
  return order
}

export const PACE_CASES: TransportCase[] = [
  fresh(
    'one task runs at a time unless told otherwise',
    async (bench) => {
      const session = await bench.session()
      const gauge = new Gauge()
      const tasks = tasksOf(session, 5)
      await dispatched(session, tasks)
      session.serve('paced', () => gauge.run(() => working(15)))
      await answered(session, tasks)
      assert.equal(gauge.most, 1)
    },
    { abilities: ['concurrency'] }
  ),
  fresh(
    'as many tasks as concurrency says run at once, and no more',
    async (bench) => {
      const session = await bench.session({ concurrency: 4 })
      const gauge = new Gauge()
      const full = deferred()
      session.serve('paced', () =>
        gauge.run(async () => {
          await full.promise
          await working(5)
        })
      )
      const tasks = tasksOf(session, 12)
      await dispatched(session, tasks)
      await eventually('four at once', () => gauge.running >= 4)
      full.resolve(undefined)
      await answered(session, tasks)
      assert.equal(gauge.most, 4)
    },
    { abilities: ['concurrency'] }
  ),
  fresh(
    'as many results as resultConcurrency says are in hand at once, and no more',
    async (bench) => {
      const session = await bench.session({ resultConcurrency: 2, concurrency: 8 })
      const gauge = new Gauge()
      const full = deferred()
      session.intake = () =>
        gauge.run(async () => {
          await full.promise
          await working(5)
        })
      session.serve('paced', () => null)
      const tasks = tasksOf(session, 6)
      for (const task of tasks) await session.transport.dispatch(task)
      await eventually('two results in hand', () => gauge.running >= 2)
      full.resolve(undefined)
      await answered(session, tasks)
      await eventually('the end', () => gauge.running === 0)
      assert.equal(gauge.most, 2)
    },
    { abilities: ['concurrency'] }
  ),
  fresh(
    'the more urgent task is taken first, equals in their order',
    async (bench) => {
      const session = await bench.session({ concurrency: 1 })
      const urgency = [5, 9, 5, 1]
      const tasks = urgency.map((priority, index) => session.task('paced', index, { priority }))
      assert.deepEqual(await orderOf(session, tasks), [1, 0, 2, 3])
    },
    { abilities: ['concurrency', 'priority'] }
  ),
  fresh(
    'tasks without a priority are taken in the order of their dispatch',
    async (bench) => {
      const session = await bench.session({ concurrency: 1 })
      const tasks = tasksOf(session, 12)
      assert.deepEqual(
        await orderOf(session, tasks),
        tasks.map(({ input }) => input)
      )
    },
    { abilities: ['concurrency'] }
  ),
]
