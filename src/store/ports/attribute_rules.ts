/*
 * Search attributes as stores index and compare them: numbers with numbers, strings and booleans as text.
 * A key that is missing, or kept as the other type, matches no operator, `ne` included.
 */
import { compareText } from '../../foundation/versions.ts'
import type { AttributeFilter, AttributeOperator } from '../../types/query.ts'
import type { SearchAttributes } from '../../types/run.ts'

/** Characters of a string attribute that are indexed and compared; the run keeps the whole value. */
export const INDEXED_ATTRIBUTE_CHARACTERS = 255

/** One indexed attribute. */
export interface AttributeEntry {
  key: string
  value: string | number
}

/** The form in which a value is indexed and compared; undefined for what cannot be (non-finite numbers). */
export function indexedAttribute(value: unknown): string | number | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? value : undefined
    case 'boolean':
      return String(value)
    case 'string':
      return cut(value)
    default:
      return undefined
  }
}

/** The index entries of a run. */
export function attributeEntries(attributes: SearchAttributes | undefined): AttributeEntry[] {
  const entries: AttributeEntry[] = []
  for (const [key, raw] of Object.entries(attributes ?? {})) {
    const value = indexedAttribute(raw)
    if (value !== undefined) entries.push({ key, value })
  }
  return entries
}

/** Whether an indexed value (undefined: none) satisfies a filter. */
export function matchesAttribute(
  stored: string | number | undefined,
  filter: AttributeFilter
): boolean {
  const wanted = indexedAttribute(filter.value)
  if (stored === undefined || wanted === undefined || typeof stored !== typeof wanted) return false
  const order =
    typeof stored === 'number' ? stored - (wanted as number) : compareText(stored, wanted as string)
  return HOLDS[filter.op](order)
}

const HOLDS: Record<AttributeOperator, (order: number) => boolean> = {
  eq: (order) => order === 0,
  ne: (order) => order !== 0,
  gt: (order) => order > 0,
  gte: (order) => order >= 0,
  lt: (order) => order < 0,
  lte: (order) => order <= 0,
}

function cut(value: string): string {
  if (value.length <= INDEXED_ATTRIBUTE_CHARACTERS) return value
  return [...value].slice(0, INDEXED_ATTRIBUTE_CHARACTERS).join('')
}
