/*
 * Lineage: which runs a run started, from what its history records.
 */
import { CHILD_ROW, childOfRow, SPAWN_ROW } from '../foundation/ids.ts'
import type { FullStore } from '../store/full_store.ts'
import { checkpointPages } from '../store/paging.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import { foldedChildIds } from '../replay/folds.ts'

type ChildRow = Pick<StepCheckpoint, 'name' | 'status' | 'output'>

/** The children that one row records. */
export const childrenOfRow = (row: ChildRow): string[] =>
  foldedChildIds(row) ?? [childOfRow(row.name) ?? []].flat()

/**
 * Ids of the child runs that these rows record, folded waves included, each once, in the order of the
 * rows. Pure.
 */
export function childIdsOf(checkpoints: ChildRow[]): string[] {
  return [...new Set(checkpoints.flatMap(childrenOfRow))]
}

/** Ids of the runs this run recorded; stable after they ended. */
export async function childrenOf(store: FullStore, runId: string): Promise<string[]> {
  const ids = new Set<string>()
  for await (const page of checkpointPages(store, runId, {
    namePrefixes: [CHILD_ROW, SPAWN_ROW],
  })) {
    for (const id of page.flatMap(childrenOfRow)) ids.add(id)
  }
  return [...ids]
}

/**
 * The same, and whatever the run waits for right now: a store without atomic commits may have the wait
 * before the row.
 */
export async function knownChildrenOf(store: FullStore, runId: string): Promise<string[]> {
  const recorded = await childrenOf(store, runId)
  const waiters = await store.listSignalWaitersByRunIds([runId])
  const awaited = waiters
    .filter(({ token }) => token.startsWith(CHILD_TOKEN))
    .sort((a, b) => a.seq - b.seq)
    .map(({ token }) => token.slice(CHILD_TOKEN.length))
  return [...new Set([...recorded, ...awaited])]
}

const CHILD_TOKEN = 'child:'
