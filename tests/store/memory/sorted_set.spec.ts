import { test } from '@japa/runner'
import { compareText } from '../../../src/foundation/versions.ts'
import { SortedSet, type SortedEntry } from '../../../src/store/memory/sorted_set.ts'

const order = (a: SortedEntry, b: SortedEntry) => a.key - b.key || compareText(a.id, b.id)

/** The same numbers in every run of the suite. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return (state >>> 8) % below
  }
}

test.group('SortedSet', () => {
  test('keeps what a plain sorted list keeps, whatever is added and removed', ({ assert }) => {
    const next = numbers(7)
    const set = new SortedSet()
    const model = new Map<string, SortedEntry>()
    for (let step = 0; step < 12_000; step++) {
      const entry = { key: next(400), id: `r${next(40)}` }
      const name = `${entry.key}:${entry.id}`
      if (next(3) > 0) {
        set.add(entry.key, entry.id)
        model.set(name, entry)
      } else {
        set.delete(entry.key, entry.id)
        model.delete(name)
      }
    }
    const expected = [...model.values()].sort(order)
    assert.equal(set.size, expected.length)
    assert.isAbove(expected.length, 2 * 512)
    assert.deepEqual([...set.ascending()], expected)
    assert.deepEqual([...set.descending()], [...expected].reverse())
  })

  test('reads downwards from any entry, there or not', ({ assert }) => {
    const set = new SortedSet()
    const entries = Array.from({ length: 2000 }, (_, n) => ({ key: n >> 2, id: `r${n % 4}` }))
    for (const { key, id } of entries) set.add(key, id)
    for (const before of [
      { key: -1, id: '' },
      { key: 0, id: 'r1' },
      { key: 250, id: 'r2' },
      { key: 250, id: 'r2x' },
      { key: 9999, id: '' },
    ]) {
      const expected = entries.filter((entry) => order(entry, before) < 0).reverse()
      assert.deepEqual([...set.descending(before)], expected)
    }
  })

  test('an empty set reads as nothing, and again after everything left', ({ assert }) => {
    const set = new SortedSet()
    set.delete(1, 'a')
    assert.deepEqual([[...set.ascending()], [...set.descending({ key: 1, id: 'a' })]], [[], []])
    set.add(1, 'a')
    set.add(1, 'a')
    assert.equal(set.size, 1)
    set.delete(1, 'a')
    assert.deepEqual([set.size, [...set.descending()].length], [0, 0])
  })
})
