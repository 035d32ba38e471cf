/*
 * Folded waves: one row that stands for many children which all succeeded. Everything that counts, lists
 * or pages members reads rows through here, on decoded values; a store cannot (invariant 12).
 */
import { CHILD_ROW, childToken, signalName, stepIdOf } from '../foundation/ids.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'

/** What the row of a folded wave is called, before id prefix and indexes. */
export const FOLD_ROW = `${CHILD_ROW}fold:`

/** Children `from` to `to` (inclusive) of a fan; the id of each is the prefix and its index. */
interface Fold {
  idPrefix: string
  from: number
  values: unknown[]
}

type Folded = Pick<StepCheckpoint, 'name' | 'status' | 'output'>

/** What a row folds; undefined for every other row, a child that is merely called like one included. */
function foldOf({ name, status, output }: Folded): Fold | undefined {
  if (status !== 'completed' || !name.startsWith(FOLD_ROW)) return undefined
  const { idPrefix, from, values } = (output ?? {}) as Partial<Fold>
  if (typeof idPrefix !== 'string' || !Array.isArray(values)) return undefined
  return typeof from === 'number' ? { idPrefix, from, values } : undefined
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
  return fold.values.map((value, i) => {
    const seq = row.seq + i
    const name = signalName(childToken(`${fold.idPrefix}${fold.from + i}`))
    return { ...row, seq, name, stepId: stepIdOf(row.runId, seq), output: { ok: true, value } }
  })
}
