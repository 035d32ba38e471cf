/*
 * Bounded concurrency over a list: at most `limit` items at once, results in input order, one item's
 * failure never stops the others.
 */
export type Outcome<T> = { ok: true; value: T } | { ok: false; error: unknown }

export async function mapBounded<In, Out>(
  items: readonly In[],
  limit: number,
  work: (item: In, index: number) => Promise<Out>
): Promise<Outcome<Out>[]> {
  const results = new Array<Outcome<Out>>(items.length)
  let next = 0
  const lane = async () => {
    while (next < items.length) {
      const index = next++
      try {
        results[index] = { ok: true, value: await work(items[index], index) }
      } catch (error) {
        results[index] = { ok: false, error }
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(Math.max(1, limit), items.length) }, lane))
  return results
}
