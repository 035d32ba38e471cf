/*
 * What a case is: a call of the store, and how many rows it may read. So many for each row of its basis, and
 * so many besides. The basis is the answer, unless it says otherwise; reads by tag are measured by the rows
 * that their workflow and statuses have, since a tag is no column of its own.
 */
import type { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { LIVE_RUN_STATUSES, type RunStatus, TERMINAL_RUN_STATUSES } from '../../src/types/run.ts'

/** Rows of the data that the cases are about. */
export interface Samples {
  /** Runs that wait for a result at position 3, and ended ones. */
  waiting: string[]
  ended: string[]
  /** A live run of each of these. */
  singleton: { runId: string; tag: string }
  pending: string
}

export interface Case {
  name: string
  /** Answers how many rows the answer has, or stands for. */
  call: Call
  /** Rows it may read for each row of its basis, and besides. */
  times: number
  plus: number
  /** What stands for the answer. */
  basis?: Basis
  /** The same where a database knows no better, by the title of its table. */
  elsewhere?: { readonly [title: string]: Basis }
  /** It counts every run, which may take the whole table. */
  ofAll?: true
  /** It is about something that is not there. */
  finds?: 'nothing'
}

export type Call = (store: LucidStateStore, samples: Samples) => Promise<number>

/** A condition on runs, in words and in SQL. */
export interface Basis {
  words: string
  where: string
}

export const LIVE: RunStatus[] = [...LIVE_RUN_STATUSES]
/** Claimed or parked, as admission asks. */
export const ACTIVE: RunStatus[] = ['running', 'suspended']
export const ENDED: RunStatus[] = [...TERMINAL_RUN_STATUSES]

const LIVE_SQL = `status IN ('pending', 'running', 'suspended', 'blocked')`
export const ALL_LIVE: Basis = { words: 'live', where: LIVE_SQL }
export const LIVE_MUTEX: Basis = {
  words: 'live, workflow',
  where: `workflow = 'mutex' AND ${LIVE_SQL}`,
}

export const lengthOf = async (rows: Promise<unknown[]>): Promise<number> => {
  const found = await rows
  return found.length
}

const PAGE = 25

export const list =
  (query: Parameters<LucidStateStore['listRuns']>[0]): Call =>
  (store) =>
    lengthOf(store.listRuns({ size: PAGE, ...query }))

export const count =
  (query: Parameters<LucidStateStore['countRuns']>[0]): Call =>
  (store) =>
    store.countRuns(query)
