/*
 * What an adaptive limit does to a transport that polls: it grows while steps go well, shrinks when they
 * fail, and bounds what runs.
 */
import type { Assert } from '@japa/assert'
import { systemTimers, type Timers } from '../../src/foundation/clock.ts'
import {
  eventually,
  repeated,
  type TransportSession,
} from '../../src/testing/contracts/transport_session.ts'
import type { Transport } from '../../src/transport/ports.ts'
import { BEAT_KEY_MS } from '../../src/transport/worker_keys.ts'
import type { WorkerStatus } from '../../src/wire/messages.ts'
import { T0 } from '../helpers/fake_time.ts'

/** Workers say how they are all the time. */
const TALKATIVE: Timers = {
  ...systemTimers,
  every: (ms, fn) => systemTimers.every(ms === BEAT_KEY_MS ? 20 : ms, fn),
}

/** Options of the worker. */
export const ADAPTIVE = {
  concurrency: { mode: 'adaptive', max: 3, tickMs: 20, ramCeilingPct: 100 },
  timers: TALKATIVE,
  // Time that stands still: nothing is slow, and nothing stalls.
  clock: () => T0,
} as const

export async function growsAndShrinks(
  assert: Assert,
  engine: TransportSession,
  worker: Transport
): Promise<void> {
  let status: WorkerStatus | undefined
  const until = (what: string, check: () => boolean) => {
    const look = async () => {
      const { liveWorkers } = await worker.groupHealth!('busy')
      status = liveWorkers[0]?.status
    }
    return repeated(what, look, check)
  }
  let running = 0
  let most = 0
  let fails = false
  const waiting: (() => void)[] = []
  worker.handle!('busy', async () => {
    most = Math.max(most, ++running)
    await new Promise<void>((resolve) => waiting.push(resolve))
    running--
    if (fails) throw new Error('planned')
  })
  const tasks = Array.from({ length: 60 }, (_, index) => engine.task('busy', index))
  for (const task of tasks) await engine.transport.dispatch(task)
  await until('three at once', () => waiting.length === 3)
  await until('what it says', () => status?.concurrency.limit === 3)
  assert.deepInclude(status?.concurrency, { mode: 'adaptive', min: 1, max: 3 })
  fails = true
  await until('the limit of one', () => {
    waiting.shift()?.()
    return status?.concurrency.limit === 1
  })
  assert.equal(status?.lastAdjust?.reason, 'backpressure')
  assert.equal(most, 3)
  // A look that began under the limit before may still take one more.
  for (let i = 0; i < 4; i++) {
    await eventually('the next one', () => waiting.length > 0)
    waiting.shift()?.()
  }
  await until('one that runs', () => {
    if (running > 1) waiting.shift()?.()
    return running <= 1
  })
  most = 0
  for (let i = 0; i < 5; i++) {
    await eventually('the next one', () => waiting.length > 0)
    waiting.shift()?.()
  }
  assert.equal(most, 1)
  for (const task of tasks) {
    await eventually('the end', () => {
      for (const resolve of waiting.splice(0)) resolve()
      return engine.heard(task).length > 0
    })
  }
}
