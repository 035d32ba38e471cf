/*
 * Role: targeted checkpoint reads. Optional; the fallbacks filter full listings.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { CheckpointKey, CheckpointRange } from '../../types/query.ts'

export interface ReplayReads {
  /** As `listCheckpoints`, but a `completed` row comes without its input. */
  listCheckpointsForReplay(runId: string): Promise<StepCheckpoint[]>
  /**
   * The rows at `seqs` and every row at or after `fromSeq`, ascending; a `completed` row comes without
   * its input. What a turn needs that kept its history (ours).
   */
  listCheckpointsAt(runId: string, seqs: number[], fromSeq: number): Promise<StepCheckpoint[]>
  /** Runs by id; missing ones are absent, order unspecified (ours). */
  getRuns(runIds: string[]): Promise<WorkflowRun[]>
  getCheckpoints(keys: CheckpointKey[]): Promise<StepCheckpoint[]>
  hasCheckpoints(runId: string, range: CheckpointRange): Promise<boolean>
  countCheckpoints(runId: string, range: CheckpointRange): Promise<number>
  /** Exact name, highest position. */
  getLatestCheckpointByName(runId: string, name: string): Promise<StepCheckpoint | undefined>
  /** Literal prefixes, ascending, each row once. */
  listCheckpointsByNamePrefix(runId: string, prefixes: string[]): Promise<StepCheckpoint[]>
}
