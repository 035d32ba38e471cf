/*
 * Fallback of fans and their waiters: one write after the other, waiter first (invariant 2). Nothing is
 * ever folded; only reads are longer.
 */
import { isSettledStatus } from '../../types/checkpoint.ts'
import type { FanRows } from '../ports/fan_rows.ts'
import type { CompleteRoles } from './complete_roles.ts'

export function fanRows(store: CompleteRoles): FanRows {
  return {
    async registerChildWaits(waits) {
      for (const { waiter, checkpoint } of waits) {
        const stored = await store.getCheckpoint(checkpoint.runId, checkpoint.seq)
        if (stored && isSettledStatus(stored.status)) continue
        await store.putSignalWaiter(waiter)
        await store.saveCheckpoint(checkpoint)
      }
    },

    async compactCheckpoints() {
      return false
    },

    async hasSignalWaiter(token) {
      const waiters = await store.listSignalWaiters(token)
      return waiters.some((waiter) => waiter.token === token)
    },

    async listSignalWaitersByRunIds(runIds) {
      if (runIds.length === 0) return []
      const wanted = new Set(runIds)
      const waiters = await store.listSignalWaiters('')
      return waiters.filter((waiter) => wanted.has(waiter.runId))
    },
  }
}
