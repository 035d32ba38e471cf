/*
 * What ten thousand runs that wait keep in memory. Measured in a process of its own, after collections.
 */
import { test } from '@japa/runner'
import type { Measured, MeasureOptions } from './measure.ts'
import { measured } from './measured.ts'

const MINUTE = 60_000
const RUNS = 10_000
/** A live body keeps its closures, its promises and its async context. */
const LIVE_BYTES = 10_000
const WARM_BYTES = 4_000
const COLD_BYTES = 250

test.group('Memory of suspended runs', () => {
  test('ten thousand of them', async ({ assert }) => {
    const options: MeasureOptions = { runs: RUNS }
    const { live, warm, cold, suspended, completed } = await measured<Measured>(
      'measure.ts',
      options
    )
    assert.isAtLeast(suspended, RUNS)
    assert.isBelow(live, LIVE_BYTES, 'with its body live')
    assert.isBelow(warm, WARM_BYTES, 'with its body evicted and its history warm')
    assert.isBelow(cold, COLD_BYTES, 'with nothing kept')
    assert.equal(completed, 100, 'percent of the runs that went on afterwards')
  }).timeout(5 * MINUTE)
})
