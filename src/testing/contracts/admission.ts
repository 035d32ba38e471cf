/*
 * What every admission backend does, as a table without a test runner. Time is the clock that the case
 * moves; every caller has a waiter id that stays the same.
 */
import assert from 'node:assert/strict'
import type { AdmissionCase } from './admission/bench.ts'
import { FLEET_CASES } from './admission/fleet.ts'
import { eventually } from './transport_session.ts'

export const ADMISSION_CASES: readonly AdmissionCase[] = [
  {
    title: 'concurrency 1 blocks the second call until release',
    async run(bench) {
      bench.register({ concurrency: 1 })
      await bench.admits('a')
      await bench.denies('b')
      await bench.release('a')
      await bench.admits('b')
    },
  },
  {
    title: 'a fixed window of 2 blocks the third and reopens in the next window',
    async run(bench) {
      bench.register({ rateLimit: { limit: 2, periodMs: 10_000 } })
      await bench.admits('a')
      await bench.admits('b')
      await bench.denies('c')
      await bench.release('a')
      await bench.denies('c')
      bench.now += 10_000
      await bench.admits('c')
    },
  },
  {
    title: 'the highest-priority waiter wins a freed slot',
    async run(bench) {
      bench.register({ concurrency: 1 })
      await bench.admits('holder')
      await bench.denies('low', { priority: 1 })
      await bench.denies('none')
      await bench.denies('high', { priority: 9 })
      await bench.release('holder')
      await bench.denies('low', { priority: 1 })
      await bench.denies('none')
      await bench.admits('high', { priority: 9 })
    },
  },
  {
    title: 'equal waiters are admitted in the order of their arrival',
    async run(bench) {
      bench.register({ concurrency: 1 })
      await bench.admits('holder')
      for (const id of ['b', 'c', 'a']) await bench.denies(id)
      for (const [before, next] of [
        ['holder', 'b'],
        ['b', 'c'],
        ['c', 'a'],
      ]) {
        await bench.release(before)
        for (const id of ['a', 'c', 'b']) if (id !== next && id > next) await bench.denies(id)
        await bench.admits(next)
      }
    },
  },
  {
    title: "order 'lifo' admits the latest arrival",
    async run(bench) {
      bench.register({ concurrency: 1, order: 'lifo' })
      await bench.admits('holder')
      for (const id of ['b', 'c', 'a']) await bench.denies(id)
      await bench.release('holder')
      await bench.denies('b')
      await bench.denies('c')
      await bench.admits('a')
    },
  },
  {
    title: "fairness 'key' prefers the key that was never served",
    async run(bench) {
      bench.register({ concurrency: 1, fairness: 'key' })
      await bench.admits('a1', { key: 'a' })
      await bench.denies('a2', { key: 'a' })
      await bench.denies('b1', { key: 'b' })
      await bench.release('a1')
      await bench.denies('a2', { key: 'a' })
      await bench.admits('b1', { key: 'b' })
      await bench.denies('b2', { key: 'b' })
      await bench.release('b1')
      await bench.denies('b2', { key: 'b' })
      await bench.admits('a2', { key: 'a' })
    },
  },
  {
    title: 'a queue that is not registered is not gated, and not handled',
    async run(bench) {
      assert.equal(bench.backend.handles(bench.queue), false)
      await bench.admits('a')
      await bench.admits('b')
      bench.register({ concurrency: 1 })
      assert.equal(bench.backend.handles(bench.queue), true)
    },
  },
  {
    title: 'a denial says when to ask again, later than now',
    async run(bench) {
      bench.register({ concurrency: 1, retryMs: 250 })
      await bench.admits('a')
      const retryAt = await bench.denies('b')
      assert.ok(retryAt > bench.now, `${retryAt} is later than ${bench.now}`)
      assert.ok(retryAt <= bench.now + 250, `${retryAt} is within the retry of the queue`)
    },
  },
  {
    title: 'asking again does not lose the place of the first arrival',
    async run(bench) {
      bench.register({ concurrency: 1, retryMs: 1000 })
      await bench.admits('holder')
      await bench.denies('first')
      bench.now += 500
      await bench.denies('second')
      bench.now += 500
      await bench.denies('first')
      await bench.release('holder')
      await bench.denies('second')
      await bench.admits('first')
    },
  },
  {
    title: 'a waiter that stopped asking leaves the line and blocks nobody',
    async run(bench) {
      bench.register({ concurrency: 1, retryMs: 1000 })
      await bench.admits('holder')
      await bench.denies('gone', { priority: 9 })
      await bench.denies('there')
      await bench.release('holder')
      await bench.denies('there')
      bench.now += 3_001
      await bench.admits('there')
    },
  },
  {
    title: 'releasing a slot that nobody holds changes nothing',
    async run(bench) {
      bench.register({ concurrency: 1 })
      await bench.admits('a')
      await bench.release('nobody')
      await bench.denies('b')
      await bench.release('a')
      await bench.release('a')
      await bench.admits('b')
      await bench.denies('c')
    },
  },
  {
    title: 'a holder that asks again is admitted without a second slot',
    async run(bench) {
      bench.register({ concurrency: 2 })
      for (let i = 0; i < 3; i++) await bench.admits('a')
      await bench.admits('b')
      await bench.denies('c')
      await bench.release('a')
      await bench.admits('c')
    },
  },
  {
    title: 'a denial by rate does not use up the window',
    async run(bench) {
      bench.register({ rateLimit: { limit: 1, periodMs: 10_000 } })
      await bench.admits('a')
      for (let i = 0; i < 5; i++) await bench.denies('b')
      bench.now += 10_000
      await bench.admits('b')
    },
  },
  {
    title: 'who waits for the next window keeps its place, and is not overtaken',
    async run(bench) {
      bench.register({ rateLimit: { limit: 2, periodMs: 60_000 } })
      await bench.admits('a')
      await bench.admits('b')
      await bench.denies('low')
      await bench.denies('lowest', { priority: -1 })
      await bench.denies('high', { priority: 9 })
      bench.now += 60_000
      await bench.denies('newcomer')
      await bench.denies('lowest', { priority: -1 })
      await bench.admits('low')
      await bench.admits('high', { priority: 9 })
      await bench.denies('newcomer')
    },
  },
  {
    title: 'who waits for the next window and does not come holds up nobody for long',
    async run(bench) {
      bench.register({ rateLimit: { limit: 1, periodMs: 60_000 }, retryMs: 1000 })
      await bench.admits('a')
      await bench.denies('gone')
      await bench.denies('there')
      bench.now += 60_000
      await bench.denies('there')
      bench.now += 3_000
      await bench.admits('there')
    },
  },
  {
    title: 'registering a queue again changes its caps and frees no slot',
    async run(bench) {
      bench.register({ concurrency: 1 })
      await bench.admits('a')
      bench.register({ concurrency: 2 })
      await bench.admits('b')
      await bench.denies('c')
      bench.register({ concurrency: 1 })
      await bench.release('a')
      await bench.denies('c')
      await bench.release('b')
      await bench.admits('c')
    },
  },
  {
    title: 'whoever listens hears the queue in which a slot came free, until it stops',
    async run(bench) {
      bench.register({ concurrency: 1 })
      const heard: string[] = []
      const stop = bench.backend.onFreed((queue) => void heard.push(queue))
      await bench.admits('a')
      await bench.release('a')
      await eventually('the freed slot', () => heard.length > 0)
      assert.deepEqual(heard, [bench.queue])
      stop()
      await bench.admits('a')
      await bench.release('a')
      assert.deepEqual(heard, [bench.queue])
    },
  },
  ...FLEET_CASES,
]
