/*
 * Singletons across processes: four workers over one database, runs of many keys, and a worker killed every
 * now and then. The ledger, written in the runs' own transactions, never shows more than the limit inside
 * a key at once, shows them oldest first, each once, and nobody is left.
 *
 *   npm run test:singletons                 500 runs over 20 keys, limits 1 and 3, Postgres and MySQL
 *   npm run test:singletons -- --short      80 runs over 6 keys
 *   npm run test:singletons -- --only=postgres --seed=7
 *
 * Ends with one plain line: `N passed, N failed`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { createDatabase, type Dialect, reachableDialects } from '../helpers/databases.ts'
import { seededRandom } from '../helpers/random.ts'
import { type Entry, judge } from './judge.ts'
import { type Guest, LEASE_MS, LEDGER, registerGuest } from './worker.ts'
import { Worker } from './worker_process.ts'

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    only: { type: 'string' },
    seed: { type: 'string', default: String(process.pid) },
  },
})

const WORKERS = 4
const SIZE = values.short
  ? { runs: 80, keys: 6, kills: 3, minutes: 2 }
  : { runs: 500, keys: 20, kills: 15, minutes: 8 }

const printed = (workers: Iterable<Worker>): string[] =>
  [...workers].flatMap(({ output }) => (output === '' ? [] : [`a worker printed: ${output}`]))

let passed = 0
let failed = 0
const random = seededRandom(Number(values.seed))
console.log(`seed ${values.seed}`)
for (const dialect of await reachableDialects()) {
  if (dialect === 'sqlite' || (values.only !== undefined && values.only !== dialect)) continue
  for (const limit of [1, 3]) {
    const problems = await play(dialect, limit).catch((error: Error) => [String(error.stack)])
    if (problems.length === 0) passed += 1
    else failed += 1
    console.log(`${problems.length === 0 ? 'ok     ' : 'FAILED '} ${dialect}, limit ${limit}`)
    for (const problem of problems.slice(0, 20)) console.log(`         ${problem}`)
  }
}
if (passed + failed === 0) failed = 1
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0

async function play(dialect: Dialect, limit: number): Promise<string[]> {
  const began = performance.now()
  const database = await createDatabase(dialect)
  const { db, location } = database
  const store = new LucidStateStore(db)
  const workers = new Set<Worker>()
  try {
    await store.ensureSchema()
    await db.connection().schema.createTable(LEDGER, (table) => {
      table.increments('id')
      table.string('run_id', 255).notNullable()
      table.string('guest_key', 255).notNullable()
      table.string('what', 10).notNullable()
    })
    const age = await invite(store, limit)
    const begun = Array.from({ length: WORKERS }, () => Worker.begin({ location, limit }))
    for (const worker of await Promise.all(begun)) workers.add(worker)
    const arriving: Promise<void>[] = []
    let kills = 0
    const until = performance.now() + SIZE.minutes * 60_000
    for (;;) {
      const left = SIZE.runs - (await store.countRuns({ status: 'completed' }))
      if (left === 0) break
      if (performance.now() > until) return [...printed(workers), ...(await stuck(store))]
      // Spread over the work, not over time: a slow machine kills as often. The last comes while there is
      // enough left to wait for a worker that boots.
      if (
        kills < SIZE.kills &&
        workers.size > 1 &&
        SIZE.runs - left >= (SIZE.runs * kills) / (SIZE.kills + 3)
      ) {
        await pause(random() * 200)
        const victim = [...workers][Math.floor(random() * workers.size)]
        workers.delete(victim)
        await victim.kill()
        // The others go on while the next one boots.
        arriving.push(Worker.begin({ location, limit }).then((worker) => void workers.add(worker)))
        kills += 1
      }
      await pause(20)
    }
    await Promise.all(arriving)
    const rows = await db.from(LEDGER).orderBy('id')
    const ledger = rows.map((row): Entry => ({
      runId: row.run_id,
      key: row.guest_key,
      what: row.what,
    }))
    const seconds = Math.round((performance.now() - began) / 1000)
    console.log(`${dialect}, limit ${limit}: ${SIZE.runs} runs, ${kills} kills, ${seconds} s`)
    const problems = judge(ledger, age, limit)
    if (kills < SIZE.kills) problems.push(`${kills} kills instead of ${SIZE.kills}`)
    return [...problems, ...printed(workers)]
  } finally {
    for (const worker of workers) await worker.kill()
    await database.cleanup()
  }
}

/** Starts every run while nobody works; answers the place of each among those of its key. */
async function invite(store: LucidStateStore, limit: number): Promise<Map<string, number>> {
  const host = new WorkflowEngine({
    store,
    leaseMs: LEASE_MS,
    runDispatcher: { dispatch: async () => {} },
  })
  registerGuest(host, limit)
  const age = new Map<string, number>()
  const invited = new Map<string, number>()
  let last = 0
  for (let i = 0; i < SIZE.runs; i++) {
    const key = `key ${Math.floor(random() * SIZE.keys)}`
    const guest: Guest = { key, stays: Math.floor(random() * 150), sleeps: random() < 0.2 }
    // No two of the same age, so that the order of creation is told.
    while (Date.now() === last) await pause(1)
    last = Date.now()
    const runId = `guest ${i}`
    await host.start('guest', guest, runId)
    age.set(runId, invited.get(key) ?? 0)
    invited.set(key, (invited.get(key) ?? 0) + 1)
  }
  await host.drain()
  return age
}

async function stuck(store: LucidStateStore): Promise<string[]> {
  const runs = await store.listRuns({ statuses: ['pending', 'running', 'suspended', 'blocked'] })
  const failures = await store.listRuns({ statuses: ['failed', 'dead', 'cancelled'] })
  return [...failures, ...runs].map(
    ({ id, status, wakeAt, lockedBy, tags, error }) =>
      `${id} is ${status}: ${JSON.stringify({ wakeAt, lockedBy, tags, error })}`
  )
}
