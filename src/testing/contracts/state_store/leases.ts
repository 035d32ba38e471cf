/*
 * Contract: leases. A live one refuses everybody; time always comes from the caller.
 */
import assert from 'node:assert/strict'
import { makeRun, matches, oneWinner, T0, type StoreCase } from './support.ts'

const LEASE = 1000

export const LEASE_CASES: StoreCase[] = [
  {
    name: 'a free lease is taken, a live one refused, an expired one taken again',
    async run(store) {
      await store.createRun(makeRun('r'))
      assert.equal(await store.tryLockRun('r', 'a', T0 + LEASE, T0), true)
      matches(await store.getRun('r'), { lockedBy: 'a', lockedUntil: T0 + LEASE })
      assert.equal(await store.tryLockRun('r', 'b', T0 + 2 * LEASE, T0 + LEASE - 1), false)
      assert.equal(await store.tryLockRun('r', 'b', T0 + 2 * LEASE, T0 + LEASE), true)
      matches(await store.getRun('r'), { lockedBy: 'b', lockedUntil: T0 + 2 * LEASE })
    },
  },
  {
    name: 'a holder cannot take its own live lease again',
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.tryLockRun('r', 'a', T0 + LEASE, T0)
      assert.equal(await store.tryLockRun('r', 'a', T0 + 2 * LEASE, T0 + 1), false)
      matches(await store.getRun('r'), { lockedUntil: T0 + LEASE })
    },
  },
  {
    name: 'of concurrent takers one gets the lease',
    async run(store) {
      await store.createRun(makeRun('r'))
      const owners = ['a', 'b', 'c', 'd', 'e']
      const answers = await Promise.all(
        owners.map((owner) => store.tryLockRun('r', owner, T0 + LEASE, T0))
      )
      oneWinner(answers)
      matches(await store.getRun('r'), { lockedBy: owners[answers.indexOf(true)] })
    },
  },
  {
    name: 'of concurrent takers of an expired lease one gets it',
    async run(store) {
      await store.createRun(makeRun('r', { lockedBy: 'dead', lockedUntil: T0 - 1 }))
      oneWinner(
        await Promise.all(
          ['a', 'b', 'c'].map((owner) => store.tryLockRun('r', owner, T0 + LEASE, T0))
        )
      )
    },
  },
  {
    name: 'only the holder renews',
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.tryLockRun('r', 'a', T0 + LEASE, T0)
      assert.equal(await store.renewRunLock('r', 'b', T0 + 9 * LEASE), false)
      matches(await store.getRun('r'), { lockedBy: 'a', lockedUntil: T0 + LEASE })
      assert.equal(await store.renewRunLock('r', 'a', T0 + 3 * LEASE), true)
    },
  },
  {
    name: 'a renewed lease is honoured',
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.tryLockRun('r', 'a', T0 + LEASE, T0)
      await store.renewRunLock('r', 'a', T0 + 3 * LEASE)
      assert.equal(await store.tryLockRun('r', 'b', T0 + 9 * LEASE, T0 + 2 * LEASE), false)
      assert.equal(await store.tryLockRun('r', 'b', T0 + 9 * LEASE, T0 + 3 * LEASE), true)
    },
  },
  {
    name: 'a lease that was released cannot be renewed',
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.tryLockRun('r', 'a', T0 + LEASE, T0)
      await store.releaseRunLock('r', 'a')
      assert.equal(await store.renewRunLock('r', 'a', T0 + 3 * LEASE), false)
    },
  },
  {
    name: 'a fenced release by a stale owner changes nothing',
    async run(store) {
      await store.createRun(makeRun('r', { lockedBy: 'stale', lockedUntil: T0 - 1 }))
      await store.tryLockRun('r', 'new', T0 + LEASE, T0)
      await store.releaseRunLock('r', 'stale')
      matches(await store.getRun('r'), { lockedBy: 'new', lockedUntil: T0 + LEASE })
    },
  },
  {
    name: 'a fenced release by the owner frees',
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.tryLockRun('r', 'a', T0 + LEASE, T0)
      await store.releaseRunLock('r', 'a')
      matches(await store.getRun('r'), { lockedBy: undefined, lockedUntil: undefined })
      assert.equal(await store.tryLockRun('r', 'b', T0 + LEASE, T0), true)
    },
  },
  {
    name: 'an unfenced release always frees',
    async run(store) {
      await store.createRun(makeRun('r'))
      await store.tryLockRun('r', 'a', T0 + LEASE, T0)
      await store.releaseRunLock('r')
      matches(await store.getRun('r'), { lockedBy: undefined, lockedUntil: undefined })
    },
  },
  {
    name: 'an unknown run can be neither taken nor renewed',
    async run(store) {
      assert.equal(await store.tryLockRun('nobody', 'a', T0 + LEASE, T0), false)
      assert.equal(await store.renewRunLock('nobody', 'a', T0 + LEASE), false)
      await store.releaseRunLock('nobody', 'a')
      await store.releaseRunLock('nobody')
    },
  },
]
