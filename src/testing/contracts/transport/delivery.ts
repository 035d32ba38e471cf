/*
 * Delivery: what is refused comes again, what is parked waits, and what is closed takes nothing.
 */
import assert from 'node:assert/strict'
import { type Cancel, systemTimers, type Timers } from '../../../foundation/clock.ts'
import { eventually, quietly } from '../transport_session.ts'
import { fresh, one, shared, type TransportCase } from './case.ts'

/** Timers of the system that know how many of them are set. */
class CountedTimers implements Timers {
  readonly #set = new Set<Cancel>()

  get pending(): number {
    return this.#set.size
  }

  after(ms: number, fn: () => void): Cancel {
    const cancel = this.#keep(
      systemTimers.after(ms, () => {
        this.#set.delete(cancel)
        fn()
      })
    )
    return cancel
  }

  every(ms: number, fn: () => void): Cancel {
    return this.#keep(systemTimers.every(ms, fn))
  }

  #keep(stop: Cancel): Cancel {
    const cancel = () => {
      this.#set.delete(cancel)
      stop()
    }
    this.#set.add(cancel)
    return cancel
  }
}

export const DELIVERY_CASES: TransportCase[] = [
  one('a result that its handler refused comes again', async (session) => {
    session.serve('again', () => 7)
    const task = session.task('again', null)
    session.refusals.set(task.stepId, 2)
    await session.transport.dispatch(task)
    await eventually('the third delivery', () => session.heard(task).length === 3)
    assert.deepEqual(
      session.heard(task).map((result) => result.output),
      [7, 7, 7]
    )
  }),
  one('a retry that is dispatched while the failure is in hand comes back too', async (session) => {
    let runs = 0
    session.serve('retried', () => {
      if (++runs === 1) throw new Error('planned')
      return 'well'
    })
    const task = session.task('retried', null)
    session.intake = async ({ stepId, status }) => {
      if (stepId !== task.stepId || status === 'completed') return
      await session.transport.dispatch({ ...task, attempt: 2 })
    }
    await session.transport.dispatch(task)
    await eventually('the second answer', () => session.heard(task).length === 2)
    assert.deepEqual(
      session.heard(task).map(({ status, output }) => [status, output]),
      [
        ['failed', undefined],
        ['completed', 'well'],
      ]
    )
  }),
  fresh('a heartbeat handler that throws hears the next beats', async (bench) => {
    const session = await bench.session()
    session.refuseBeats = true
    for (const beats of [1, 2, 3]) {
      session.serve('beating', () => eventually('the beat', () => session.beats.length >= beats))
      await session.outputOf('beating', null)
    }
    const reported = session.errors.filter((error) => (error as Error).message === 'refused beat')
    assert.ok(reported.length >= 3, `${reported.length} were reported`)
  }),
  fresh('failures of result and heartbeat handlers are reported', async (bench) => {
    const session = await bench.session()
    session.serve('reported', () => eventually('the beat', () => session.beats.length > 0))
    const task = session.task('reported', null)
    session.refusals.set(task.stepId, 1)
    session.refuseBeats = true
    await session.transport.dispatch(task)
    await eventually('the second delivery', () => session.heard(task).length === 2)
    session.assertReported('refused')
    session.assertReported('refused beat')
  }),
  fresh('deferred consumers claim nothing, then take what piled up', async (bench) => {
    const session = await bench.session({ deferred: true })
    let runs = 0
    session.serve('parked', () => 'replaced')
    session.serve('parked', () => ++runs)
    const task = session.task('parked', null)
    await session.transport.dispatch(task)
    await quietly()
    assert.equal(runs, 0)
    session.transport.startConsumers?.()
    const { output } = await session.resultOf(task)
    assert.equal(output, 1)
    session.serve('later', () => 'at once')
    assert.equal(await session.outputOf('later', null), 'at once')
  }),
  fresh('deferred engines hear no results until they start', async (bench) => {
    const session = await bench.session({ deferred: true })
    session.serve('parked', () => 'heard')
    const tasks = [session.task('parked', 1), session.task('parked', 2)]
    for (const task of tasks) await session.transport.dispatch(task)
    await quietly()
    assert.equal(session.results.length + session.beats.length, 0)
    session.transport.startConsumers?.()
    for (const task of tasks) await session.resultOf(task)
  }),
  shared('what was parked when its transport closed never starts', async (bench) => {
    const engine = await bench.session()
    const parked = await bench.session({ deferred: true })
    parked.serve('parked', () => 'of the parked one')
    await parked.transport.close?.()
    parked.transport.startConsumers?.()
    engine.serve('parked', () => 'of the engine')
    for (let i = 0; i < 3; i++) {
      assert.equal(await engine.outputOf('parked', i), 'of the engine')
    }
  }),
  fresh('close twice is fine, and nothing is consumed afterwards', async (bench) => {
    const session = await bench.session()
    let finish: () => void = () => {}
    session.serve('endless', () => new Promise<void>((resolve) => (finish = resolve)))
    const task = session.task('endless', null)
    await session.transport.dispatch(task)
    await eventually('the pickup', () => session.beats.length > 0)
    await session.transport.close?.()
    await session.transport.close?.()
    finish()
    await quietly()
    assert.equal(session.results.length, 0)
    await assert.rejects(async () => session.transport.dispatch(session.task('endless', null)))
  }),
  fresh(
    'close leaves no timer',
    async (bench) => {
      const timers = new CountedTimers()
      const session = await bench.session({ timers, maxStalledCount: 1 })
      session.serve('done', () => null)
      session.serve('held', () => new Promise(() => {}))
      const done = session.task('done', null)
      session.refusals.set(done.stepId, 1)
      await session.transport.dispatch(done)
      await eventually('the second delivery', () => session.heard(done).length === 2)
      await session.transport.dispatch(session.task('held', null))
      await eventually('the pickup', () => session.beats.some(({ group }) => group === 'held'))
      await session.transport.close?.()
      await eventually('the last timer', () => timers.pending === 0)
    },
    { abilities: ['timers'] }
  ),
]
