/*
 * A fan of ten thousand members: how often its parent's body runs, and what it takes in memory. That its
 * statements and readings are linear is counted in tests/integration/counts and tests/replay.
 */
import { test } from '@japa/runner'
import type { BigFan, BigFanOptions } from './big_fan.ts'
import { measured } from './measured.ts'

const MINUTE = 60_000
const MEMBERS = 10_000
const CONCURRENCY = 500
/** Their rows, and what is in flight. */
const A_MEMBER = 6_000
/** Code and caches that stay. */
const LEFT = 3_000_000
/** Batches that land before the parent parks wake it once more. */
const AGAIN = 4

test.group('Memory of big fans', () => {
  for (const kind of ['step', 'child'] as const) {
    for (const concurrency of [undefined, CONCURRENCY]) {
      const waves = concurrency === undefined ? 1 : MEMBERS / concurrency
      const how = concurrency === undefined ? 'all at once' : `in ${waves} waves`
      test(`${MEMBERS} members, each a ${kind}, ${how}`, async ({ assert }) => {
        const options: BigFanOptions = { members: MEMBERS, kind, concurrency }
        const { output, bodies, left, peakAMember } = await measured<BigFan>('big_fan.ts', options)
        assert.isTrue(output)
        assert.isAtMost(bodies, 2 * waves + AGAIN)
        assert.isBelow(peakAMember, A_MEMBER)
        assert.isBelow(left, LEFT)
      }).timeout(2 * MINUTE)
    }
  }
})
