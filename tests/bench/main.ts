/*
 * How fast it is, beside what the machine can do at most, measured in the same run. The digits depend on
 * the machine and on what else it does; the shares of the raw limit are what to compare.
 *
 *   npm run bench                  two tables, printed; with --out=FILE also written there
 *   npm run bench -- --quick       the same in a few seconds, too short to mean much
 *   npm run bench -- --store=postgres --case=local     only that, without transports: for a profiler
 *   npm run bench -- --transport=db                    only that: eventEmitter, db, bullmq, queue-redis or
 *                                                      queue-database (the adapters of @adonisjs/queue)
 *   npm run bench -- --transport=queue-redis --poll=10      with another pollIntervalMs than its default
 */
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release } from 'node:os'
import { parseArgs } from 'node:util'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { backend } from '../helpers/backends.ts'
import { countStatements, createDatabase, type TestDatabase } from '../helpers/databases.ts'
import { Bench, type Case, CASES, SIZES, startLatencies, type Timing } from './cases.ts'
import { type RawLimits, rawLimits } from './raw_limits.ts'
import { CARRIERS, measureTransports } from './transports.ts'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    store: { type: 'string' },
    case: { type: 'string' },
    transport: { type: 'string' },
    poll: { type: 'string' },
    out: { type: 'string' },
  },
})

const SIZE = values.quick ? SIZES.quick : SIZES.full
const REPEATS = values.quick ? 1 : 3
const RAW_ROWS = values.quick ? 500 : 4_000

interface Subject {
  name: string
  database?: TestDatabase
  store: StateStore
}

/** What one case came to on one store. */
interface Outcome {
  perSecond: number
  cpuMsEach: number
  statementsEach?: number
}

interface Column {
  name: string
  raw?: RawLimits
  outcomes: Outcome[]
  latencies?: { p50: number; p99: number }
}

const cases = CASES.filter(({ name }) => values.case === undefined || name.includes(values.case))
const columns: Column[] = []
let server = ''
const chosen = values.transport
if (chosen !== undefined && !(CARRIERS as readonly string[]).includes(chosen)) {
  console.error(`--transport must be one of ${CARRIERS.join(', ')}, not "${chosen}"`)
  process.exit(1)
}
const pollIntervalMs = values.poll === undefined ? undefined : Number(values.poll)
if (chosen === undefined) {
  for (const name of await wantedStores()) columns.push(await measure(name))
}
const ofStores = chosen === undefined ? write(columns) : ''
const withTransports = values.store === undefined && values.case === undefined
const ofTransports =
  withTransports &&
  (await measureTransports({
    sizes: SIZE,
    repeats: REPEATS,
    rawTasks: RAW_ROWS,
    only: chosen,
    pollIntervalMs,
  }))
const report = [ofStores, ofTransports].filter(Boolean).join('\n')
process.stdout.write(report)
if (values.out !== undefined) writeFileSync(values.out, report)

async function wantedStores(): Promise<string[]> {
  const stores = ['memory', 'SQLite']
  if (await backend('postgres')) stores.push('Postgres')
  const wanted = values.store?.toLowerCase()
  return stores.filter((name) => wanted === undefined || name.toLowerCase() === wanted)
}

async function open(name: string): Promise<Subject> {
  if (name === 'memory') return { name, store: new InMemoryStateStore() }
  const database = await createDatabase(name === 'SQLite' ? 'sqlite' : 'postgres')
  const store = new LucidStateStore(database.db)
  await store.ensureSchema()
  return { name, database, store }
}

async function measure(name: string): Promise<Column> {
  const subject = await open(name)
  const { database, store } = subject
  try {
    const raw = database && (await rawLimits(database.location, RAW_ROWS))
    if (name === 'Postgres') server = await settingsOf(database!)
    const outcomes: Outcome[] = []
    for (const one of cases) outcomes.push(await play(one, subject))
    if (values.case !== undefined) return { name, raw, outcomes }
    const bench = new Bench(store)
    await bench.run('empty', null)
    const latencies = await startLatencies(bench, SIZE)
    await bench.engine.drain()
    const at = (part: number) => latencies[Math.floor(latencies.length * part)]
    return { name, raw, outcomes, latencies: { p50: at(0.5), p99: at(0.99) } }
  } finally {
    await database?.cleanup()
  }
}

/** The best of a few repeats: what disturbs a measurement only ever makes it slower. */
async function play(one: Case, { store, database }: Subject): Promise<Outcome> {
  const bench = new Bench(store)
  const statementsEach = await rehearse(one, bench, database)
  const timings: Timing[] = []
  for (let i = 0; i < REPEATS; i++) timings.push(await one.measure(bench, SIZE))
  await bench.engine.drain()
  const best = timings.reduce((a, b) => (a.ms / a.units <= b.ms / b.units ? a : b))
  return {
    perSecond: best.units / (best.ms / 1000),
    cpuMsEach: best.cpuMs / best.units,
    statementsEach,
  }
}

async function rehearse(
  one: Case,
  bench: Bench,
  database: TestDatabase | undefined
): Promise<number | undefined> {
  // Once to warm up, once to count.
  await one.rehearse(bench)
  const counter = database && countStatements(database.db)
  await one.rehearse(bench)
  counter?.stop()
  return counter && counter.count / one.rehearsed
}

async function settingsOf({ db }: TestDatabase): Promise<string> {
  const { rows } = await db.rawQuery(`select current_setting('server_version') as version,
    current_setting('fsync') as fsync, current_setting('synchronous_commit') as sync`)
  const { version, fsync, sync } = rows[0]
  return `Postgres ${version} (fsync ${fsync}, synchronous_commit ${sync})`
}

/* ---- the report ---- */

function write(measured: Column[]): string {
  const [cpu] = cpus()
  const load = loadavg()[0].toFixed(1)
  const machine = [
    `Node ${process.version}`,
    `${availableParallelism()} × ${cpu?.model.trim() ?? 'CPU'}`,
    `Linux ${release()}`,
    server,
    `load ${load} at the end`,
  ].filter(Boolean)
  const row = (title: string, cell: (column: Column) => string | undefined) =>
    `| ${title} | ${measured.map((column) => cell(column) ?? '–').join(' | ')} |`
  const rows = [
    `| | ${measured.map(({ name }) => name).join(' | ')} |`,
    `| --- |${measured.map(() => ' --: |').join('')}`,
    row('raw insert + commit a second, 1 connection', ({ raw }) => raw && whole(raw.one)),
    row('raw insert + commit a second, 8 connections', ({ raw }) => raw && whole(raw.eight)),
    ...cases.flatMap((one, i) => [
      row(`**${one.name}, a second**`, ({ outcomes }) => `**${whole(outcomes[i].perSecond)}**`),
      row('statements each', ({ outcomes }) => outcomes[i].statementsEach?.toFixed(1)),
      row('statements a second ÷ raw limit, 8 connections', (column) => share(column, i)),
      row('CPU of this process each, ms', ({ outcomes }) => outcomes[i].cpuMsEach.toFixed(2)),
    ]),
    row('**start → body began, ms: p50**', ({ latencies }) => latencies?.p50.toFixed(2)),
    row('p99', ({ latencies }) => latencies?.p99.toFixed(2)),
  ]
  return `# Bench

Written by \`npm run bench\`. The digits depend on the machine and on what else it does; compare shares of
the raw limit, which was measured in the same run. Here steps run in this process, on an in-memory transport;
SQLite keeps a file in WAL mode with \`synchronous = NORMAL\`; suspended bodies stay live. Best of ${REPEATS}.

${machine.join(' · ')}

${rows.join('\n')}
`
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

function share({ raw, outcomes }: Column, i: number): string | undefined {
  const { perSecond, statementsEach } = outcomes[i]
  if (!raw || statementsEach === undefined) return undefined
  return `${Math.round((100 * perSecond * statementsEach) / raw.eight)} %`
}
