/*
 * Dispatched steps over every transport, runs in Postgres: how many a second, and how long each takes from
 * `ctx.step` to its value. In-process the handler runs beside the engine, over a broker in a process of its
 * own. The rates of bare queues are measured in the same run.
 */
import type { ChildProcess } from 'node:child_process'
import { QueueSchemaService } from '@adonisjs/queue'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { EventEmitterTransport } from '../../src/transport/event_emitter/event_emitter_transport.ts'
import { backend } from '../helpers/backends.ts'
import { type DatabaseLocation, createDatabase } from '../helpers/databases.ts'
import { emptyPrefix } from '../helpers/redis.ts'
import { beginWorker, type Broker, endWorker, openBroker } from './brokers.ts'
import { Bench, type Case, CASES, type Sizes, type Timing } from './cases.ts'
import { rawBullMq, rawSkipLocked } from './raw_queues.ts'

export const CARRIERS = ['eventEmitter', 'db', 'bullmq', 'queue-redis', 'queue-database'] as const

export type CarrierName = (typeof CARRIERS)[number]

const PREFIX = `bench-${process.pid}`
/** A step of one run after the other takes a poll interval or more there. */
const QUEUE_SHARE = 1 / 5
const OVER_REDIS = new Set<CarrierName>(['bullmq', 'queue-redis'])

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
  /** Of the queue transport, in ms; default its own. */
  pollIntervalMs?: number
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
    if (redis !== null || !OVER_REDIS.has(name)) columns.push(await measure(name, redis, options))
  }
  return write(columns, options.pollIntervalMs)
}

async function measure(
  name: CarrierName,
  redis: string | null,
  options: TransportBenchOptions
): Promise<Column> {
  const database = await createDatabase('postgres')
  const broker = brokerOf(name, database.location, redis, options.pollIntervalMs)
  const url = redisOf(broker)
  let worker: ChildProcess | undefined
  try {
    const store = new LucidStateStore(database.db)
    await store.ensureSchema()
    if (name === 'queue-database') {
      await new QueueSchemaService(database.db.connection().getWriteClient()).createJobsTable()
    }
    const transport = broker ? await openBroker(broker, database.db) : new EventEmitterTransport()
    worker = broker && (await beginWorker(broker))
    const bench = new Bench(store, { transport, serves: broker === undefined })
    const outcomes: Outcome[] = []
    const sizes = sizesFor(broker, options.sizes)
    for (const one of DISPATCHING) outcomes.push(await play(one, bench, { ...options, sizes }))
    await bench.engine.drain()
    await transport.close?.()
    return { name, raw: await rawRate(broker, options.rawTasks), outcomes }
  } finally {
    if (worker) await endWorker(worker)
    if (url !== undefined) {
      for (const names of ['', 'bull:', 'jobs::']) await emptyPrefix(url, `${names}${PREFIX}`)
    }
    await database.cleanup()
  }
}

function brokerOf(
  name: CarrierName,
  location: DatabaseLocation,
  redis: string | null,
  pollIntervalMs?: number
): Broker | undefined {
  const prefix = PREFIX
  switch (name) {
    case 'eventEmitter':
      return undefined
    case 'db':
      return { name, location }
    case 'bullmq':
      return { name, location, url: redis!, prefix }
    case 'queue-redis':
      return { name: 'queue', location, backing: { redis: redis! }, prefix, pollIntervalMs }
    case 'queue-database':
      return { name: 'queue', location, backing: { database: location }, prefix, pollIntervalMs }
  }
}

function sizesFor(broker: Broker | undefined, sizes: Sizes): Sizes {
  if (broker?.name !== 'queue') return sizes
  return { ...sizes, sequential: Math.ceil(sizes.sequential * QUEUE_SHARE) }
}

/** Of the server that carries the steps. */
function rawRate(broker: Broker | undefined, tasks: number): Promise<number> | undefined {
  if (!broker) return undefined
  const url = redisOf(broker)
  if (url === undefined) return rawSkipLocked(broker.location, tasks)
  return rawBullMq(url, `bull:${PREFIX}`, tasks)
}

function redisOf(broker: Broker | undefined): string | undefined {
  if (broker?.name === 'bullmq') return broker.url
  if (broker?.name === 'queue' && 'redis' in broker.backing) return broker.backing.redis
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

function write(columns: Column[], pollIntervalMs?: number): string {
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
  const interval = pollIntervalMs === undefined ? 'its default' : `${pollIntervalMs} ms`
  return `## Transports

Runs in Postgres. Over \`db\` (the same Postgres), \`bullmq\` (Redis) and \`queue\` (adapters of
\`@adonisjs/queue\` over that Redis and that Postgres) the steps run in one worker process. The bare queues
are \`FOR UPDATE SKIP LOCKED\`, one row a statement over 8 connections, and BullMQ, one job a command;
latency is from \`ctx.step\` to its value in the body. \`queue\` polls: its latency is mostly
\`pollIntervalMs\`, here ${interval}.

${rows.join('\n')}
`
}
