/*
 * Folded waves: one row that stands for many children which all succeeded. Everything that replays, counts,
 * lists or pages members reads rows through here, on decoded values; a store cannot (invariant 12).
 */
import { CHILD_ROW, childToken, signalName, stepIdOf } from '../foundation/ids.ts'
import type { CompletionEnvelope, StepCheckpoint } from '../types/checkpoint.ts'

/** What the row of a folded wave is called, before id prefix and indexes. */
export const FOLD_ROW = `${CHILD_ROW}fold:`

/** Children `from` to `to` (inclusive) of a fan; the id of each is the prefix and its index. */
interface Fold {
  idPrefix: string
  from: number
  values: unknown[]
  /** Places in `values` of children without an output, which JSON cannot tell from null. */
  absent?: number[]
}

type Folded = Pick<StepCheckpoint, 'name' | 'status' | 'output'>

/** What a row folds; undefined for every other row, a child that is merely called like one included. */
function foldOf({ name, status, output }: Folded): Fold | undefined {
  if (status !== 'completed' || !name.startsWith(FOLD_ROW)) return undefined
  const { idPrefix, from, values, absent } = (output ?? {}) as Partial<Fold>
  if (typeof idPrefix !== 'string' || !Array.isArray(values)) return undefined
  return typeof from === 'number' ? { idPrefix, from, values, absent } : undefined
}

/** How many members a row stands for. */
export const widthOf = (row: Folded): number => foldOf(row)?.values.length ?? 1

/** Ids of the children a folded row stands for; undefined for any other row. */
export function foldedChildIds(row: Folded): string[] | undefined {
  const fold = foldOf(row)
  return fold?.values.map((_, i) => `${fold.idPrefix}${fold.from + i}`)
}

/** The members that a row stands for: itself, or one row for each child of a folded wave. */
export function membersOf(row: StepCheckpoint): StepCheckpoint[] {
  const fold = foldOf(row)
  if (!fold) return [row]
  const absent = new Set(fold.absent)
  return fold.values.map((value, i) => {
    const seq = row.seq + i
    const name = signalName(childToken(`${fold.idPrefix}${fold.from + i}`))
    const output = absent.has(i) ? { ok: true } : { ok: true, value }
    const member = { ...row, seq, name, stepId: stepIdOf(row.runId, seq), output }
    // The order is that of the whole fan, which its first row carries.
    if (i > 0) delete member.order
    return member
  })
}

/** Members that one row may stand for, and the JSON text it may hold, in characters. */
const MOST_MEMBERS = 1000
const MOST_TEXT = 256 * 1024
/** Folding is a transaction; for fewer rows than these it saves less than it costs. */
const FEWEST_MEMBERS = 16

/** A member of a wave: its row, when it is one that may be folded with its neighbours. */
export interface FoldMember {
  index: number
  childId: string
  row: StepCheckpoint | undefined
}

/** The rows that can stand for these members, which follow one another; each with the last position it covers. */
export function foldsOf(
  members: Iterable<FoldMember>
): { folded: StepCheckpoint; toSeq: number }[] {
  const folds: { folded: StepCheckpoint; toSeq: number }[] = []
  let open: { prefix: string; from: number; rows: StepCheckpoint[]; text: number } | undefined
  const close = () => {
    if (open && open.rows.length >= FEWEST_MEMBERS) folds.push(foldRow(open))
    open = undefined
  }
  for (const { index, childId, row } of members) {
    const prefix = childId.slice(0, childId.length - String(index).length)
    const text = row && isFoldable(row, childId) ? JSON.stringify(row.output).length : Infinity
    const fits =
      open?.prefix === prefix &&
      row?.order === undefined &&
      open.rows.length < MOST_MEMBERS &&
      open.text + text <= MOST_TEXT
    if (!fits) close()
    if (text > MOST_TEXT) continue
    open ??= { prefix, from: index, rows: [], text: 0 }
    open.rows.push(row!)
    open.text += text
  }
  close()
  return folds
}

/** A child that continued as new is recorded under a later link: its row stays. */
function isFoldable(row: StepCheckpoint, childId: string): boolean {
  return (
    row.status === 'completed' &&
    row.name === signalName(childToken(childId)) &&
    (row.output as CompletionEnvelope | undefined)?.ok === true
  )
}

function foldRow({ prefix, from, rows }: { prefix: string; from: number; rows: StepCheckpoint[] }) {
  const [first] = rows
  const last = rows.at(-1)!
  const to = from + rows.length - 1
  const outputs = rows.map((row) => (row.output as { value?: unknown }).value)
  const values = outputs.map((value) => value ?? null)
  const absent = outputs.flatMap((value, i) => (value === undefined ? [i] : []))
  const latest = Math.max(...rows.map((row) => row.finishedAt.getTime()))
  const folded: StepCheckpoint = {
    ...first,
    name: `${FOLD_ROW}${prefix}:${from}-${to}`,
    output: {
      ok: true,
      idPrefix: prefix,
      from,
      to,
      values,
      ...(absent.length > 0 ? { absent } : {}),
    },
    finishedAt: new Date(latest),
  }
  return { folded, toSeq: last.seq }
}
