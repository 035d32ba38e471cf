/*
 * Everything one in-memory store holds. Roles work on these maps in one synchronous turn each: between
 * two awaits nobody else runs, which is this store's lock.
 */
import type { WakeHint } from '../ports/wake_hints.ts'
import { CheckpointTable } from './checkpoint_table.ts'
import { EventTable } from './event_table.ts'
import { RunQueries } from './run_queries.ts'
import { RunTable } from './run_table.ts'
import { ScheduleTable } from './schedule_table.ts'
import { SignalTable } from './signal_table.ts'

export class Tables {
  readonly runs = new RunTable()
  readonly queries = new RunQueries(this.runs)
  readonly checkpoints = new CheckpointTable()
  readonly signals = new SignalTable()
  readonly events = new EventTable()
  readonly schedules = new ScheduleTable()
  readonly listeners = new Set<(hint: WakeHint) => void>()

  /** Removes a run with what belongs to it; buffers stay. */
  deleteRun(runId: string): boolean {
    this.checkpoints.remove(runId)
    this.signals.removeOfRun(runId)
    return this.runs.remove(runId)
  }
}
