/*
 * A page of runs of which some may not be readable in this process, because a payload of theirs cannot be
 * decoded: those are left out, where the listing as a whole would reject.
 */
import { PayloadCodecError } from '../../errors.ts'
import { hasCode } from '../../foundation/failure.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { RunQuery } from '../../types/query.ts'
import type { WorkflowRun } from '../../types/run.ts'

export interface ReadablePage {
  runs: WorkflowRun[]
  /** Runs of the page that cannot be read. */
  unreadable: number
  /** As many runs as were asked for: there may be more. */
  isFull: boolean
}

export async function readablePage(
  store: Pick<FullStore, 'listRuns'>,
  query: RunQuery & { page: number; size: number }
): Promise<ReadablePage> {
  try {
    const runs = await store.listRuns(query)
    return { runs, unreadable: 0, isFull: runs.length >= query.size }
  } catch (error) {
    if (!hasCode(error, PayloadCodecError.code)) throw error
    return onePerRead(store, query)
  }
}

async function onePerRead(
  store: Pick<FullStore, 'listRuns'>,
  query: RunQuery & { page: number; size: number }
): Promise<ReadablePage> {
  const runs: WorkflowRun[] = []
  let unreadable = 0
  for (let index = 0; index < query.size; index++) {
    const page = (query.page - 1) * query.size + index + 1
    try {
      const [run] = await store.listRuns({ ...query, page, size: 1 })
      if (!run) break
      runs.push(run)
    } catch (error) {
      if (!hasCode(error, PayloadCodecError.code)) throw error
      unreadable += 1
    }
  }
  return { runs, unreadable, isFull: runs.length + unreadable >= query.size }
}
