/*
 * Transactions of user code. What user code writes through `raw` (this store) is not undone; checkpoints
 * are kept back until the work returned, so that work which throws leaves none, and a turn that lost its
 * lease in user code commits none (invariant 1).
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { isTerminalStatus } from '../../types/run.ts'
import { LeaseLostError } from '../../errors.ts'
import type { LeaseFence, StoreTransaction } from '../ports/transactions.ts'
import type { Tables } from './tables.ts'

export async function runTransaction<T>(
  raw: unknown,
  tables: Tables,
  work: (tx: StoreTransaction) => Promise<T>
): Promise<T> {
  const writes: { checkpoint: StepCheckpoint; fence?: LeaseFence }[] = []
  const value = await work({
    raw,
    async saveCheckpoint(checkpoint, fence) {
      if (fence) check(tables, checkpoint.runId, fence)
      writes.push({ checkpoint: { ...checkpoint }, fence })
    },
  })
  for (const { checkpoint, fence } of writes) {
    if (fence) check(tables, checkpoint.runId, fence)
  }
  for (const { checkpoint } of writes) tables.checkpoints.save(checkpoint)
  return value
}

function check(tables: Tables, runId: string, { owner, turn }: LeaseFence): void {
  const run = tables.runs.get(runId)
  const held = run?.lockedBy === owner && run.turns === turn && !isTerminalStatus(run.status)
  if (!held) throw new LeaseLostError(runId, owner)
}
