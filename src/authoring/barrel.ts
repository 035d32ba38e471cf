/*
 * Barrels: maps of lazy imports, as the assembler hooks generate them. Keys only say where a module came
 * from; groups may be nested.
 */
import { InvalidArgumentError } from '../errors.ts'
import { importing, type Exported } from './discovery.ts'

/** Modules by key, each behind a lazy import: `{ 'app/workflows/order.ts': () => import('…') }`. */
export interface Barrel {
  readonly [key: string]: (() => Promise<unknown>) | Barrel
}

/**
 * The exports of every module of a barrel, in its order. Throws `DurableError` (`discovery_import`, naming
 * the key, with `cause`) for a module that cannot be imported, `InvalidArgumentError` for an entry that is
 * neither a lazy import nor a group of them.
 */
export async function exportsOfBarrel(barrel: Barrel): Promise<Exported[]> {
  const exported: Exported[] = []
  for (const [place, load] of entriesOfBarrel(barrel)) {
    const module = await importing(place, load)
    const values = typeof module === 'object' && module !== null ? Object.values(module) : [module]
    exported.push(...values.map((value) => ({ value, place })))
  }
  return exported
}

/** The keys of a barrel's modules; those of nested groups joined by dots. */
export function placesOf(barrel: Barrel): string[] {
  return entriesOfBarrel(barrel).map(([place]) => place)
}

function entriesOfBarrel(barrel: Barrel, within = ''): [string, () => Promise<unknown>][] {
  return Object.entries(barrel).flatMap(([key, entry]) => {
    const place = `${within}${key}`
    if (typeof entry === 'function') return [[place, entry]]
    if (typeof entry === 'object' && entry !== null) return entriesOfBarrel(entry, `${place}.`)
    throw new InvalidArgumentError(
      `barrel entry "${place}"`,
      'is neither a lazy import nor a group of them'
    )
  })
}
