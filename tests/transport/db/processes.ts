/*
 * Processes with time of their own over one database: one whose time stands still is dead to the others.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { TransportSession } from '../../../src/testing/contracts/transport_session.ts'
import type { DbTransportConfig } from '../../../src/transport/db/options.ts'
import { FakeTime } from '../../helpers/fake_time.ts'
import { until } from '../../helpers/until.ts'
import type { DbBench } from './bench.ts'

export const LEASE_MS = 30_000

/** A process: a transport, its time, and what it reported. */
export function processOf(bench: DbBench, options: DbTransportConfig = {}) {
  const time = new FakeTime()
  const errors: Error[] = []
  const settings: DbTransportConfig = {
    clock: time.clock,
    timers: time,
    leaseMs: LEASE_MS,
    pollIntervalMs: 200,
    closeTimeoutMs: 1_000,
    onError: (error) => errors.push(error as Error),
    ...options,
  }
  const transport = bench.open(settings, async (opened) => {
    let closed = false
    const closing = opened.close().finally(() => (closed = true))
    while (!closed) await time.advance(1_000)
    await closing
  })
  return { transport, time, errors, session: new TransportSession(transport, 'claims', errors) }
}

export type Process = ReturnType<typeof processOf>

/** Rounds of `pass` before time goes no faster than a busy database answers. */
const EAGER_ROUNDS = 20

/**
 * Lets time pass for some processes, until something holds. A lease takes seconds of real time, so that it
 * is not over before a slow answer to its claim is there.
 */
export async function pass(
  processes: Process[],
  what: string,
  check: () => boolean | Promise<boolean>
): Promise<void> {
  let round = 0
  await until(async () => {
    if (round++ >= EAGER_ROUNDS) await pause(20)
    for (const { time } of processes) await time.advance(200)
    return check()
  }, what)
}

export async function rowsOf(bench: DbBench, table: string): Promise<Record<string, unknown>[]> {
  return bench.database.db.query().from(table).select('*')
}
