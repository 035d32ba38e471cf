/*
 * A commit as steps that one statement can take. One statement writes a row at most once, so entries that
 * meet at a position or a token, which an ordinary turn never has, go one after the other.
 */
import { isSettledStatus } from '../../types/checkpoint.ts'
import {
  eachOnce,
  refusedByIntent,
  type SignalWait,
  type TurnCommit,
} from '../ports/turn_commits.ts'

export interface CommitStep extends TurnCommit {
  /** Nothing applies while the run carries a cancel intent. */
  yieldsToCancel: boolean
}

export function commitSteps(commit: TurnCommit): CommitStep[] {
  const { rows, stamps, waits, expiries, runs, children, settle, ...base } = commit
  const yieldsToCancel = refusedByIntent(settle, { cancelRequestedAt: 0 })
  const step = (part: Partial<TurnCommit>): CommitStep => ({ ...base, ...part, yieldsToCancel })
  const whole = step({
    rows,
    waits,
    expiries,
    settle,
    stamps: firstOf(stamps, (stamp) => stamp.seq),
    runs: runs && eachOnce(runs),
    children: children && eachOnce(children),
  })
  if (meetsNowhere(whole)) return [whole]
  const steps = [
    ...(rows ?? []).map((row) => step({ rows: [row] })),
    ...(waits ?? []).map((wait) => step({ waits: [wait] })),
    ...(expiries ?? []).map((expiry) => step({ expiries: [expiry] })),
    step({ runs: whole.runs, children: whole.children, stamps: whole.stamps }),
  ]
  return settle ? [...steps, step({ settle })] : steps
}

/** Waits and looks. A look at what the same commit waits for sees what the wait saw, so it is left out. */
export function distinctWaits({
  waits = [],
  settle,
}: TurnCommit): (SignalWait & { look: boolean })[] {
  const taken = new Set(waits.map(({ row }) => row.seq))
  const looks = firstOf(settle?.looks, ({ row }) => row.seq) ?? []
  return [
    ...waits.map((wait) => ({ ...wait, look: false })),
    ...looks.filter(({ row }) => !taken.has(row.seq)).map((wait) => ({ ...wait, look: true })),
  ]
}

function firstOf<Item>(items: Item[] | undefined, key: (item: Item) => number): Item[] | undefined {
  if (!items || items.length < 2) return items
  const first = new Map<number, Item>()
  for (const item of items) {
    if (!first.has(key(item))) first.set(key(item), item)
  }
  return [...first.values()]
}

function meetsNowhere(step: CommitStep): boolean {
  const { rows = [], stamps = [], expiries = [] } = step
  const waits = distinctWaits(step)
  const positions = new Set<number>()
  const isNew = (seq: number) => positions.size < positions.add(seq).size
  if (![...rows, ...expiries].every(({ row }) => isNew(row.seq))) return false
  // A row may say what its position waits for.
  const open = new Set(
    rows.filter(({ row }) => !isSettledStatus(row.status)).map(({ row }) => row.seq)
  )
  if (!waits.every(({ row }) => isNew(row.seq) || open.delete(row.seq))) return false
  const tokens = [...waits, ...expiries].map(({ waiter }) => waiter.token)
  if (new Set(tokens).size < tokens.length) return false
  return !stamps.some(({ seq }) => positions.has(seq))
}
