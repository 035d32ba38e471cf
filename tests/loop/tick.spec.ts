import { test } from '@japa/runner'
import { runTick, type TickEngine } from '../../src/loop/tick.ts'
import type { RunResult } from '../../src/types/run.ts'

/** The phase of schedules, with nothing to do. */
const none = async () => ({ started: [], failures: [] })

const runs = (count: number): RunResult[] =>
  Array.from({ length: count }, (_, index) => ({ runId: `r${index}`, status: 'completed' }))

test.group('Tick', () => {
  test('runs every phase in order, each after the one before, and counts what it moved', async ({
    assert,
  }) => {
    const calls: string[] = []
    const phase = (name: string, moved: number) => async () => {
      calls.push(`${name} begins`)
      await new Promise((resolve) => setImmediate(resolve))
      calls.push(`${name} ends`)
      return runs(moved)
    }
    const result = await runTick({
      runPending: phase('pending', 3),
      recoverIncomplete: phase('recovery', 2),
      resumeDueTimers: phase('timers', 1),
      sweepTimeouts: async () => void (await phase('timeouts', 1)()),
      fireSchedules: async (options) => ({
        started: await phase('schedules', 4)(),
        failures: options?.now === undefined ? [] : [{ key: 'k', error: 1 }],
      }),
      sweepRetention: async () => {
        const gone = await phase('retention', 5)()
        return gone.length
      },
      sweepStalled: async () => {
        await phase('stalled', 1)()
        return []
      },
    })
    assert.deepEqual(calls, [
      'pending begins',
      'pending ends',
      'recovery begins',
      'recovery ends',
      'timers begins',
      'timers ends',
      'timeouts begins',
      'timeouts ends',
      'schedules begins',
      'schedules ends',
      'retention begins',
      'retention ends',
      'stalled begins',
      'stalled ends',
    ])
    assert.deepEqual(result, {
      pending: 3,
      recovered: 2,
      timers: 1,
      scheduled: 4,
      evicted: 5,
      errors: [],
    })
  })

  test('a phase that fails is reported under its name, and the others run', async ({ assert }) => {
    const down = new Error('database is down')
    const result = await runTick({
      runPending: async () => {
        throw down
      },
      recoverIncomplete: () => {
        throw down
      },
      resumeDueTimers: async () => runs(2),
      sweepTimeouts: async () => {
        throw down
      },
      fireSchedules: async () => ({
        started: runs(1),
        failures: [
          { key: 'a', error: down },
          { key: 'b', error: 'odd' },
        ],
      }),
      sweepRetention: async () => {
        throw down
      },
      sweepStalled: () => {
        throw down
      },
    })
    assert.deepEqual(result.errors, [
      { phase: 'runPending', error: down },
      { phase: 'recoverIncomplete', error: down },
      { phase: 'sweepTimeouts', error: down },
      { phase: 'runSchedules', error: down },
      { phase: 'runSchedules', error: 'odd' },
      { phase: 'sweepRetention', error: down },
      { phase: 'sweepStalled', error: down },
    ])
    assert.equal(result.scheduled, 1)
    assert.equal(result.timers, 2)
    assert.equal(result.pending, 0)
  })

  test('the time of the tick reaches every phase; without one the engine asks its clock', async ({
    assert,
  }) => {
    const times: (number | undefined)[] = []
    const read = async (now?: number) => {
      times.push(now)
      return []
    }
    const engine: TickEngine = {
      runPending: read,
      recoverIncomplete: read,
      resumeDueTimers: read,
      sweepTimeouts: async (now) => void times.push(now),
      fireSchedules: (options) => {
        times.push(options?.now)
        return none()
      },
      sweepRetention: async (now) => {
        times.push(now)
        return 0
      },
      sweepStalled: async (now) => {
        times.push(now)
        return []
      },
    }
    await runTick(engine, { now: 5 })
    await runTick(engine)
    const unsaid = Array.from({ length: 7 }, () => undefined)
    assert.deepEqual(times, [...unsaid.map(() => 5), ...unsaid])
  })
})
