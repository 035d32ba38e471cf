/*
 * Several entries as statements: one statement writes a row at most once, so entries that meet follow one
 * another.
 */

/** Batches in which no key comes twice; of two entries with one key the later is in a later batch. */
export function batches<Item>(
  items: Item[],
  keysOf: (item: Item) => (string | number)[]
): Item[][] {
  const found: Item[][] = []
  const next = new Map<string | number, number>()
  for (const item of items) {
    const keys = keysOf(item)
    const index = Math.max(0, ...keys.map((key) => next.get(key) ?? 0))
    for (const key of keys) next.set(key, index + 1)
    if (found[index]) found[index].push(item)
    else found[index] = [item]
  }
  return found
}
