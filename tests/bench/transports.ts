/*
 * Dispatched steps over every transport, runs in Postgres: how many a second, and how long each takes from
 * `ctx.step` to its value. In-process the handler runs beside the engine, over a broker in a process of its
 * own. The rates of bare queues are measured in the same run.
 */
import type { ChildProcess } from 'node:child_process'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { EventEmitterTransport } from '../../src/transport/event_emitter/event_emitter_transport.ts'
import { backend } from '../helpers/backends.ts'
import { createDatabase } from '../helpers/databases.ts'
import { emptyPrefix } from '../helpers/redis.ts'
import { beginWorker, type Broker, endWorker, openBroker } from './brokers.ts'
import { Bench, type Case, CASES, type Sizes, type Timing } from './cases.ts'
import { rawBullMq, rawSkipLocked } from './raw_queues.ts'

export const CARRIERS = ['eventEmitter', 'db', 'bullmq'] as const

export type CarrierName = (typeof CARRIERS)[number]

interface Outcome {
  perSecond: number
  p50: number
  p99: number
}

interface Column {
  name: CarrierName
  /** Of a bare queue on the same server; tasks a second. */
  raw?: number
  outcomes: Outcome[]
}

export interface TransportBenchOptions {
  sizes: Sizes
  repeats: number
  rawTasks: number
  only?: string
}

const DISPATCHING = CASES.filter(({ unit }) => unit === 'steps')

/** The table; undefined without Postgres. */
export async function measureTransports(
  options: TransportBenchOptions
): Promise<string | undefined> {
  if (!(await backend('postgres'))) return undefined
  const redis = await backend('redis')
  const columns: Column[] = []
  for (const name of CARRIERS) {
    if (options.only !== undefined && options.only !== name) continue
    if (name !== 'bullmq' || redis !== null) columns.push(await measure(name, redis, options))
  }
  return write(columns)
}

async function measure(
  name: CarrierName,
  redis: string | null,
  options: TransportBenchOptions
): Promise<Column> {
  const database = await createDatabase('postgres')
  const prefix = `bench-${process.pid}`
  const { location } = database
  const broker: Broker | undefined =
    name === 'db'
      ? { name, location }
      : name === 'bullmq'
        ? { name, location, url: redis!, prefix }
        : undefined
  let worker: ChildProcess | undefined
  try {
    const store = new LucidStateStore(database.db)
    await store.ensureSchema()
    const transport = broker ? await openBroker(broker, database.db) : new EventEmitterTransport()
    worker = broker && (await beginWorker(broker))
    const bench = new Bench(store, { transport, serves: broker === undefined })
    const outcomes: Outcome[] = []
    for (const one of DISPATCHING) outcomes.push(await play(one, bench, options))
    await bench.engine.drain()
    await transport.close?.()
    return { name, raw: await rawRate(broker, options.rawTasks), outcomes }
  } finally {
    if (worker) await endWorker(worker)
    if (broker?.name === 'bullmq') {
      for (const names of [prefix, `bull:${prefix}`]) await emptyPrefix(broker.url, names)
    }
    await database.cleanup()
  }
}

function rawRate(broker: Broker | undefined, tasks: number): Promise<number> | undefined {
  if (broker?.name === 'db') return rawSkipLocked(broker.location, tasks)
  if (broker?.name === 'bullmq') return rawBullMq(broker.url, `bull:${broker.prefix}`, tasks)
  return undefined
}

/** The best of a few repeats, with its own latencies. */
async function play(
  one: Case,
  bench: Bench,
  { sizes, repeats }: TransportBenchOptions
): Promise<Outcome> {
  await one.rehearse(bench)
  const outcomes: Outcome[] = []
  for (let i = 0; i < repeats; i++) {
    bench.stepMs.length = 0
    const timing = await one.measure(bench, sizes)
    outcomes.push(outcomeOf(timing, bench.stepMs))
  }
  return outcomes.reduce((a, b) => (a.perSecond >= b.perSecond ? a : b))
}

function outcomeOf({ units, ms }: Timing, stepMs: number[]): Outcome {
  const latencies = stepMs.toSorted((a, b) => a - b)
  const at = (part: number) => latencies[Math.floor(latencies.length * part)]
  return { perSecond: units / (ms / 1000), p50: at(0.5), p99: at(0.99) }
}

function write(columns: Column[]): string {
  const row = (title: string, cell: (column: Column) => string | undefined) =>
    `| ${title} | ${columns.map((column) => cell(column) ?? '–').join(' | ')} |`
  const whole = (value: number) => Math.round(value).toLocaleString('en-US')
  const rows = [
    `| | ${columns.map(({ name }) => name).join(' | ')} |`,
    `| --- |${columns.map(() => ' --: |').join('')}`,
    row('raw tasks a second, a bare queue of the same server', ({ raw }) =>
      raw === undefined ? undefined : whole(raw)
    ),
    ...DISPATCHING.flatMap((one, i) => [
      row(`**${one.name}, a second**`, ({ outcomes }) => `**${whole(outcomes[i].perSecond)}**`),
      row('÷ raw', ({ raw, outcomes }) => {
        return raw === undefined
          ? undefined
          : `${Math.round((100 * outcomes[i].perSecond) / raw)} %`
      }),
      row('step latency, ms: p50', ({ outcomes }) => outcomes[i].p50.toFixed(2)),
      row('p99', ({ outcomes }) => outcomes[i].p99.toFixed(2)),
    ]),
  ]
  return `## Transports

Runs in Postgres. Over \`db\` (the same Postgres) and \`bullmq\` (Redis) the steps run in one worker process.
The bare queues are \`FOR UPDATE SKIP LOCKED\`, one row a statement over 8 connections, and BullMQ, one job
a command; latency is from \`ctx.step\` to its value in the body.

${rows.join('\n')}
`
}
