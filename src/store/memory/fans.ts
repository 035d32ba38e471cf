/*
 * Waits of a whole fan in one act: each waiter with its placeholder. A settled position is left alone.
 */
import { isSettledStatus, type SignalWaiter, type StepCheckpoint } from '../../types/checkpoint.ts'
import { assertStorable } from './columns.ts'
import type { Tables } from './tables.ts'

export function registerChildWaits(
  tables: Tables,
  waits: { waiter: SignalWaiter; checkpoint: StepCheckpoint }[]
): void {
  assertStorable(waits, 'fan')
  for (const { waiter, checkpoint } of waits) {
    const standing = tables.checkpoints.get(checkpoint.runId, checkpoint.seq)
    if (standing && isSettledStatus(standing.status)) continue
    tables.signals.put(waiter)
    tables.checkpoints.save(checkpoint)
  }
}
