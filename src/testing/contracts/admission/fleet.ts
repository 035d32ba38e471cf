/*
 * What holds for the instances of a fleet together: caps, the line and what was served are theirs in common,
 * and a slot lasts as long as the instance that holds it, however long its step takes.
 */
import assert from 'node:assert/strict'
import { systemClock } from '../../../foundation/clock.ts'
import { eventually, repeated } from '../transport_session.ts'
import type { AdmissionBench, AdmissionCase, AdmissionInstance } from './bench.ts'

const shared = (title: string, run: AdmissionCase['run']): AdmissionCase => ({
  title,
  abilities: ['shared'],
  run,
})

const leased = (title: string, run: AdmissionCase['run']): AdmissionCase => ({
  title,
  abilities: ['shared', 'leases'],
  run,
})

const TTL_MS = 1_000
/** Long enough for a busy machine to give a sign of life in time. */
const LIVE_TTL_MS = 2_000
/** By how much a server may be ahead that counts the silence by a clock of its own. */
const AHEAD_MS = 100
const LONGEST_STEP_MS = 50

/**
 * Repeats something while time passes, until `check` holds. The clock of the case goes along in small steps:
 * however long the machine stands still, the others have a moment for a sign of life before the next one.
 */
async function passing(
  bench: AdmissionBench,
  what: string,
  again: () => Promise<unknown>,
  check: () => boolean
): Promise<void> {
  let before = systemClock()
  const step = async () => {
    const now = systemClock()
    bench.now += Math.max(0, Math.min(now - before, LONGEST_STEP_MS))
    before = now
    await again()
  }
  await repeated(what, step, check)
}

/** A waiter asks until it is given the slot of an instance that is gone. */
async function inherits(bench: AdmissionBench, waiterId: string): Promise<void> {
  let admitted = false
  const ask = async () => {
    admitted = await bench.isAdmitted(waiterId)
  }
  await passing(bench, 'the slot of the dead', ask, () => admitted)
}

/** The slot of an instance that leaves comes back after its TTL; the time is taken from before its last sign. */
async function comesBack(
  bench: AdmissionBench,
  leaving: AdmissionInstance,
  leave: () => Promise<void>
): Promise<void> {
  bench.register({ concurrency: 1 })
  const began = systemClock()
  await leaving.admits('a')
  await leave()
  await inherits(bench, 'b')
  const silence = systemClock() - began
  assert.ok(silence >= TTL_MS - AHEAD_MS, `the slot was taken after ${silence} ms`)
  await bench.denies('c')
}

const CAPS: AdmissionCase[] = [
  shared('a cap holds across instances, whoever releases', async (bench) => {
    bench.register({ concurrency: 2 })
    const other = await bench.another({ concurrency: 2 })
    await bench.admits('a')
    await other.admits('b')
    await bench.denies('c')
    await other.denies('d')
    await other.release('a')
    await other.denies('d')
    await bench.admits('c')
  }),
  shared('a rate limit holds across instances', async (bench) => {
    const config = { rateLimit: { limit: 3, periodMs: 60_000 } }
    bench.register(config)
    const other = await bench.another(config)
    await bench.admits('a')
    await other.admits('b')
    await bench.admits('c')
    await other.denies('d')
    bench.now += 60_000
    await other.admits('d')
  }),
  shared('instances that ask at once do not exceed a cap together', async (bench) => {
    bench.register({ concurrency: 5 })
    const instances = [bench, await bench.another({ concurrency: 5 })]
    instances.push(await bench.another({ concurrency: 5 }))
    const asks = Array.from({ length: 12 }, (_, i) => () => instances[i % 3].ask(`waiter ${i}`))
    const atOnce = await Promise.all(asks.map((ask) => ask()))
    const first = atOnce.filter(({ admitted }) => admitted).length
    assert.ok(first <= 5, `${first} are admitted at once`)
    let held = 0
    for (const ask of asks) {
      const { admitted } = await ask()
      if (admitted) held += 1
    }
    assert.equal(held, 5, `${held} are admitted in the end`)
  }),
  shared('a holder that asks elsewhere is admitted without a second slot', async (bench) => {
    bench.register({ concurrency: 2 })
    const other = await bench.another({ concurrency: 2 })
    await bench.admits('a')
    await other.admits('a')
    await bench.admits('b')
    await other.denies('c')
    await other.release('a')
    await other.admits('c')
    await bench.denies('d')
  }),
]

const LINE: AdmissionCase[] = [
  shared('who waits stands in one line, at whichever instance', async (bench) => {
    bench.register({ concurrency: 1 })
    const other = await bench.another({ concurrency: 1 })
    await bench.admits('holder')
    await other.denies('first')
    await bench.denies('second')
    await other.denies('urgent', { priority: 9 })
    await bench.release('holder')
    await bench.denies('second')
    await other.denies('first')
    await other.admits('urgent', { priority: 9 })
    await bench.release('urgent')
    await bench.denies('second')
    await other.admits('first')
  }),
  shared("fairness 'key' counts what other instances served", async (bench) => {
    const config = { concurrency: 1, fairness: 'key' } as const
    bench.register(config)
    const other = await bench.another(config)
    await bench.admits('a1', { key: 'a' })
    await other.denies('a2', { key: 'a' })
    await other.denies('b1', { key: 'b' })
    await bench.release('a1')
    await other.denies('a2', { key: 'a' })
    await other.admits('b1', { key: 'b' })
  }),
  shared('a slot that comes free is told to other instances', async (bench) => {
    bench.register({ concurrency: 1 })
    const other = await bench.another({ concurrency: 1 })
    const heard: { queue: string; next?: readonly string[] }[] = []
    other.backend.onFreed((queue, next) => void heard.push({ queue, next }))
    const passOn = async () => {
      await bench.admits('a')
      await bench.release('a')
    }
    // It may take a moment to begin to listen.
    await repeated('news of a slot', passOn, () => heard.length > 0)
    await bench.admits('a')
    await other.denies('b')
    await bench.release('a')
    await eventually('news for who waits', () =>
      heard.some(({ next }) => next === undefined || next.includes('b'))
    )
    assert.deepEqual([...new Set(heard.map(({ queue }) => queue))], [bench.queue])
    await other.admits('b')
  }),
]

const LEASES: AdmissionCase[] = [
  leased(
    'slots of an instance that died come back after its TTL, and not before',
    async (bench) => {
      const settings = { instanceTtlMs: TTL_MS, standsStill: true }
      const dead = await bench.another({ concurrency: 1 }, settings)
      await comesBack(bench, dead, async () => {})
    }
  ),
  leased('closing an instance releases nothing before its TTL', async (bench) => {
    const closed = await bench.another({ concurrency: 1 }, { instanceTtlMs: TTL_MS })
    await comesBack(bench, closed, () => closed.close())
  }),
  leased(
    'slots of an instance that lives are never taken, however long they are held',
    async (bench) => {
      bench.register({ concurrency: 1 })
      const alive = await bench.another({ concurrency: 1 }, { instanceTtlMs: LIVE_TTL_MS })
      await alive.admits('a')
      const until = bench.now + 2 * LIVE_TTL_MS
      await passing(
        bench,
        'two TTLs',
        () => bench.denies('b'),
        () => bench.now > until
      )
      await alive.release('a')
      await bench.admits('b')
    }
  ),
  leased(
    'a slot is of the instance that its holder asked last, whatever becomes of the first',
    async (bench) => {
      bench.register({ concurrency: 2 })
      const settings = { instanceTtlMs: TTL_MS, standsStill: true }
      const dead = await bench.another({ concurrency: 2 }, settings)
      await dead.admits('moves')
      await dead.admits('stays')
      await bench.admits('moves')
      await inherits(bench, 'next')
      await bench.denies('one too many')
    }
  ),
]

export const FLEET_CASES: readonly AdmissionCase[] = [...CAPS, ...LINE, ...LEASES]
