/*
 * Fallback of the conditional checkpoint writes: read, then write. Two writers may both pass the read, so
 * a store shared by several processes should have the real ones.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { firstOfEachKey, withoutBeat, withoutInput } from '../ports/checkpoint_rules.ts'
import type { CheckpointSettlement, PendingSettles } from '../ports/pending_settles.ts'
import type { CompleteRoles } from './complete_roles.ts'

export function pendingSettles(store: CompleteRoles): PendingSettles {
  return {
    async saveCheckpointIfPending(checkpoint) {
      const stored = await store.getCheckpoint(checkpoint.runId, checkpoint.seq)
      if (stored?.status !== 'pending') return false
      await store.saveCheckpoint(checkpoint)
      return true
    },

    saveCheckpointsIfPending(checkpoints) {
      const first = firstOfEachKey(checkpoints)
      return inOrder(checkpoints, async (row, i) => first[i] && store.saveCheckpointIfPending(row))
    },

    settleCheckpointsIfPending(settlements) {
      return inOrder(settlements, async (settlement) => {
        const stored = await store.getCheckpoint(settlement.runId, settlement.seq)
        const { upToAttempt = Infinity } = settlement
        if (stored?.status !== 'pending' || stored.attempts > upToAttempt) return false
        return store.saveCheckpointIfPending(settled(stored, settlement))
      })
    },

    async getCheckpointsForSettle(keys) {
      const rows = await store.getCheckpoints(keys)
      return rows.map(withoutInput)
    },
  }
}

/** The row with what the settlement carries. */
function settled(row: StepCheckpoint, settlement: CheckpointSettlement): StepCheckpoint {
  const { wakeAt, upToAttempt, ...carried } = settlement
  const next = withoutBeat(row)
  for (const [key, value] of Object.entries(carried)) {
    if (value !== undefined) Object.assign(next, { [key]: value })
  }
  if (wakeAt === null) delete next.wakeAt
  return next
}

async function inOrder<In>(
  items: In[],
  work: (item: In, index: number) => Promise<boolean>
): Promise<boolean[]> {
  const verdicts: boolean[] = []
  for (const [index, item] of items.entries()) verdicts.push(await work(item, index))
  return verdicts
}
