/*
 * The Lucid store against the reference: the same random calls, one after the other, on both; every answer
 * and now and then everything stored must be the same. A failure names its seed and its calls.
 */
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { InMemoryStateStore } from '../../../src/store/memory/memory_store.ts'
import { withoutBeat } from '../../../src/store/ports/checkpoint_rules.ts'
import type { TurnVerdict } from '../../../src/store/ports/turn_commits.ts'
import { createDatabase, reachableDialects } from '../../helpers/databases.ts'
import { Dice, present, RUNS } from './dice.ts'
import { type Both, byId, randomCall } from './model_calls.ts'

const CALLS = 500
const SEEDS = [1, 2, 3]
const T0 = 1_700_000_000_000

const reachable = await reachableDialects()

for (const dialect of reachable) {
  for (const seed of SEEDS) {
    test(`${CALLS} random calls answer as the reference does (${dialect}, seed ${seed})`, async ({
      assert,
      cleanup,
    }) => {
      const database = await createDatabase(dialect)
      cleanup(database.cleanup)
      const lucid = new LucidStateStore(database.db)
      const memory = new InMemoryStateStore()
      await lucid.ensureSchema()
      const dice = new Dice(seed)
      const trace: string[] = []
      for (let step = 0; step < CALLS; step++) {
        const { text, on } = randomCall(dice, T0 + step * 10)
        trace.push(text)
        const answer = await settled(on(lucid))
        assert.deepEqual(answer, await settled(on(memory)), trace.slice(-12).join('\n'))
        if (step % 25 === 24) {
          assert.deepEqual(
            await snapshot(lucid),
            await snapshot(memory),
            trace.slice(-25).join('\n')
          )
        }
      }
    }).timeout(60_000)
  }
}

for (const dialect of reachable) {
  test(`a slot among many runs goes to whom the reference gives it (${dialect})`, async ({
    assert,
    cleanup,
  }) => {
    const database = await createDatabase(dialect)
    cleanup(database.cleanup)
    const lucid = new LucidStateStore(database.db)
    await lucid.ensureSchema()
    const dice = new Dice(7)
    const seen = new Set<unknown>()
    for (let round = 0; round < 12; round++) {
      const memory = new InMemoryStateStore()
      const key = `singleton:${round}`
      const ids = Array.from({ length: 12 }, (_, n) => `${round}.${n}`)
      // Rounds with few, some and many holders, whose admission is tracked or not.
      const [held, tracked] = [dice.next() * 0.3, dice.next()]
      for (const id of ids) {
        const marks = [
          ...(dice.next() < held ? ['durable:singleton:admitted'] : []),
          ...(dice.next() < tracked ? ['durable:singleton:tracked'] : []),
        ]
        const run = {
          ...dice.newRun(id, T0),
          workflow: 'w1',
          status: dice.one(['pending', 'running', 'suspended', 'blocked', 'failed'] as const),
          tags: [key, ...marks],
          turns: dice.maybe(1),
        }
        await lucid.createRun(run)
        await memory.createRun(run)
      }
      for (let claims = 0; claims < 24; claims++) {
        const claim = {
          runId: dice.one(ids),
          workflow: 'w1',
          tag: key,
          limit: 1 + dice.below(3),
          retryAt: T0 + 60,
          nowMs: T0 + dice.below(50),
        }
        const verdict = await lucid.tryAdmitSingleton(claim)
        seen.add(verdict.admitted)
        assert.deepEqual(verdict, await memory.tryAdmitSingleton(claim), JSON.stringify(claim))
        const stored = await lucid.getRun(claim.runId)
        assert.deepEqual(stored, await memory.getRun(claim.runId), JSON.stringify(claim))
      }
    }
    assert.sameMembers([...seen], [true, false])
  }).timeout(60_000)
}

/** What a call came to, in an order of its own where the port promises none. */
async function settled(answer: Promise<unknown>): Promise<unknown> {
  try {
    return inOrder(await answer)
  } catch (error) {
    return { threw: (error as { code?: string }).code ?? String(error) }
  }
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  const verdict = value as Partial<TurnVerdict> | null
  if (!verdict || typeof verdict !== 'object' || !verdict.stored) return value
  // The beats of a row that a payload completed are not read back.
  const bySeq = new Map(verdict.stored.map((row) => [row.seq, withoutBeat(row)]))
  return {
    ...verdict,
    stored: [...bySeq.values()].sort((a, b) => a.seq - b.seq),
    children: verdict.children?.map(present).sort(byId),
  }
}

async function snapshot(store: Both): Promise<unknown> {
  const waiters = await store.listSignalWaiters('')
  return {
    runs: await store.listRuns({}),
    rows: await Promise.all(RUNS.map((id) => store.listCheckpoints(id))),
    waiters: waiters.sort((a, b) => (a.token < b.token ? -1 : 1)),
    schedules: await store.listSchedules(),
  }
}
