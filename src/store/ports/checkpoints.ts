/*
 * Role: checkpoint rows. Required of every store.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'

export interface CheckpointRows {
  /**
   * Writes a row whatever was there (native upsert on `(runId, seq)`). The two heartbeat columns are
   * kept unless the object carries their keys.
   */
  saveCheckpoint(checkpoint: StepCheckpoint): Promise<void>
  getCheckpoint(runId: string, seq: number): Promise<StepCheckpoint | null>
  /** Ascending by position, undo rows (negative) included. */
  listCheckpoints(runId: string): Promise<StepCheckpoint[]>
}
