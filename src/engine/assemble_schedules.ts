/*
 * The part of the composition root that fires schedules: those of the configuration, and those of the store.
 */
import type { Clock, Timers } from '../foundation/clock.ts'
import { ScheduleClient } from '../schedules/schedule_client.ts'
import { Firing, Scheduler } from '../schedules/scheduler.ts'
import type { FullStore } from '../store/full_store.ts'
import type { Drain } from './drain.ts'
import type { Starter } from './runs/starter.ts'

export interface SchedulesOptions {
  store: FullStore
  starter: Pick<Starter, 'start'>
  drain: Drain
  clock: Clock
  timers: Timers
  namespace?: string
  maxPayloadBytes: number
  warn: (message: string) => void
  report: (error: unknown, what: string) => void
}

export function assembleSchedules(options: SchedulesOptions) {
  const { store, starter, drain, clock, timers, namespace, maxPayloadBytes } = options
  const { warn, report } = options
  const start: Starter['start'] = (...run) => starter.start(...run)
  const firing = new Firing({ store, timers, drain, report, start })
  const scheduler = new Scheduler({ firing, store, clock, warn })
  const isTaken = (key: string) => scheduler.has(key)
  const schedules = new ScheduleClient({
    store,
    firing,
    clock,
    namespace,
    isTaken,
    maxPayloadBytes,
  })
  /** How many windows a schedule may catch up with: so many of its runs are kept. */
  const catchupOf = async (key: string): Promise<number> => {
    const known = scheduler.maxCatchupOf(key)
    return known ?? (store.capabilities.schedules ? schedules.maxCatchupOf(key) : 0)
  }
  return { scheduler, schedules, catchupOf }
}
