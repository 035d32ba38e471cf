/*
 * Lineage: which runs a run started, from what its history records.
 */
import { CHILD_ROW, childOfRow, SPAWN_ROW } from '../../foundation/ids.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'

/** Ids of the child runs that these rows record, each once, in order of position. */
export function childIdsOf(checkpoints: Pick<StepCheckpoint, 'name'>[]): string[] {
  const ids = checkpoints.flatMap(({ name }) => childOfRow(name) ?? [])
  return [...new Set(ids)]
}

/** Ids of the runs this run started; stable after they ended. */
export async function childrenOf(store: FullStore, runId: string): Promise<string[]> {
  return childIdsOf(await store.listCheckpointsByNamePrefix(runId, [CHILD_ROW, SPAWN_ROW]))
}
