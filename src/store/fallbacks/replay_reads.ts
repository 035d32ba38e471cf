/*
 * Fallback of the targeted checkpoint reads: full listings, filtered. Only slower.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { forReplay, hasPrefix, inRange } from '../ports/checkpoint_rules.ts'
import type { ReplayReads } from '../ports/replay_reads.ts'
import type { CompleteRoles } from './complete_roles.ts'

export function replayReads(store: CompleteRoles): ReplayReads {
  return {
    async listCheckpointsForReplay(runId) {
      const rows = await store.listCheckpoints(runId)
      return rows.map(forReplay)
    },

    async listCheckpointsAt(runId, seqs, fromSeq) {
      const wanted = new Set(seqs)
      const rows = await store.listCheckpoints(runId)
      return rows.filter((row) => row.seq >= fromSeq || wanted.has(row.seq)).map(forReplay)
    },

    async getRuns(runIds) {
      const runs = await Promise.all([...new Set(runIds)].map((runId) => store.getRun(runId)))
      return runs.filter((run) => run !== null)
    },

    async getCheckpoints(keys) {
      const distinct = new Map(keys.map((key) => [`${key.seq}:${key.runId}`, key]))
      const rows: StepCheckpoint[] = []
      for (const { runId, seq } of distinct.values()) {
        const row = await store.getCheckpoint(runId, seq)
        if (row) rows.push(row)
      }
      return rows
    },

    async hasCheckpoints(runId, range) {
      return (await store.countCheckpoints(runId, range)) > 0
    },

    async countCheckpoints(runId, range) {
      const rows = await store.listCheckpoints(runId)
      return rows.filter((row) => inRange(row, range)).length
    },

    async getLatestCheckpointByName(runId, name) {
      const rows = await store.listCheckpoints(runId)
      return rows.findLast((row) => row.name === name)
    },

    async listCheckpointsByNamePrefix(runId, prefixes) {
      if (prefixes.length === 0) return []
      const rows = await store.listCheckpoints(runId)
      return rows.filter((row) => hasPrefix(row.name, prefixes))
    },
  }
}
