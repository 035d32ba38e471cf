/*
 * Brokers under engines: `DURABLE_TEST_TRANSPORT=db` (tables on Postgres) or `bullmq` (Redis) puts one beneath
 * every engine of a test that does not ask for a transport of its own. Each engine gets a transport of its
 * own over one set of tables or names, as the processes of a fleet have. It lives on real time; only
 * engines live on the time of the test. Its run queue is left out: which engine executes a run is for the
 * test to say.
 */
import { randomUUID } from 'node:crypto'
import { BullMQTransport, loadBullMQDeps } from '../../src/transport/bullmq/bullmq_transport.ts'
import { DbTransport } from '../../src/transport/db/db_transport.ts'
import { createDurableTransportTables } from '../../src/transport/db/schema.ts'
import { TRANSPORT_TABLES } from '../../src/transport/db/tables.ts'
import type { Transport } from '../../src/transport/ports.ts'
import type { StepHandler } from '../../src/types/step.ts'
import type { RemoteTask, StepResult } from '../../src/wire/messages.ts'
import { backend } from './backends.ts'
import { createDatabase } from './databases.ts'
import { emptyPrefix } from './redis.ts'

const NAMES = ['db', 'bullmq'] as const

/** What the engines of this process run over; undefined for what each test asks for. */
export const REAL_TRANSPORT = chosen(process.env.DURABLE_TEST_TRANSPORT)

type OnError = (error: unknown) => void

/** For the tests of a group: opened once, without a task at the beginning of each. */
export interface RealTransports {
  fresh(): Promise<Fleet>
  close(): Promise<void>
}

const CLOSE_MS = 100
/** What is on its way for longer than this waits for the test. */
const PATIENCE_MS = 2_000

/** The transports of one test, and what is on its way over them. */
export class Fleet {
  readonly #make: (onError: OnError) => Transport
  /** Step ids by name, sent and not begun. */
  readonly #sent = new Map<string, string[]>()
  readonly #served = new Set<string>()
  #answers = 0
  #busySince?: number

  constructor(make: (onError: OnError) => Transport) {
    this.#make = make
  }

  /** A task that somebody serves was sent and not begun, or an answer not taken. */
  get busy(): boolean {
    const onTheWay = this.#answers > 0 || [...this.#sent.values()].some((ids) => ids.length > 0)
    if (!onTheWay) this.#busySince = undefined
    else if (performance.now() - (this.#busySince ??= performance.now()) > PATIENCE_MS)
      this.forget()
    return this.#busySince !== undefined
  }

  /** What is on its way will not arrive, or is no matter of the test. */
  forget(): void {
    this.#sent.clear()
    this.#answers = 0
    this.#busySince = undefined
  }

  open(onError: OnError): Transport {
    const inner = this.#make(onError)
    const watched: Partial<Transport> = {
      dispatch: async (task: RemoteTask) => {
        this.#sends(task)
        await inner.dispatch(task)
      },
      handle: (name: string, fn: StepHandler, partition?: string) => {
        this.#served.add(name)
        inner.handle!(name, (input, log) => this.#run(name, () => fn(input, log)), partition)
      },
      onResult: (handler: (result: StepResult) => Promise<void>) => {
        inner.onResult(async (result) => {
          await handler(result)
          this.#answers = Math.max(0, this.#answers - 1)
        })
      },
    }
    return new Proxy(inner, {
      get(target, name) {
        if (name === 'dispatchRun' || name === 'onRun') return undefined
        const own = Reflect.get(watched, name) as unknown
        if (own !== undefined) return own
        const member = Reflect.get(target, name) as unknown
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  }

  #sends({ name, stepId, attempt }: RemoteTask): void {
    if (!this.#served.has(name)) return
    const ids = this.#sent.get(name) ?? []
    const id = `${stepId} ${attempt}`
    if (!ids.includes(id)) ids.push(id)
    this.#sent.set(name, ids)
  }

  async #run(name: string, body: () => unknown): Promise<unknown> {
    this.#sent.get(name)?.shift()
    try {
      return await body()
    } finally {
      this.#answers += 1
    }
  }
}

/** Undefined when tests have the transports that they ask for. */
export async function openRealTransports(): Promise<RealTransports | undefined> {
  if (REAL_TRANSPORT === 'db') return openTables()
  if (REAL_TRANSPORT === 'bullmq') return openNames()
  return undefined
}

async function openTables(): Promise<RealTransports> {
  await needed('postgres')
  const database = await createDatabase('postgres')
  const { db } = database
  await createDurableTransportTables(db)
  const options = { closeTimeoutMs: CLOSE_MS, concurrency: 20, resultConcurrency: 20 }
  return {
    async fresh() {
      for (const table of Object.values(TRANSPORT_TABLES)) await db.from(table).delete()
      return new Fleet((onError) => new DbTransport({ ...options, db, onError }))
    },
    close: () => database.cleanup(),
  }
}

async function openNames(): Promise<RealTransports> {
  const connection = await needed('redis')
  const deps = await loadBullMQDeps()
  const options = { closeTimeoutMs: CLOSE_MS, concurrency: 20, resultConcurrency: 20 }
  const used: string[] = []
  return {
    async fresh() {
      const prefix = `t${randomUUID().slice(0, 8)}`
      used.push(prefix)
      return new Fleet((onError) => {
        const instanceId = randomUUID()
        return new BullMQTransport({ ...options, connection, prefix, instanceId, onError }, deps)
      })
    },
    async close() {
      for (const prefix of used) {
        await emptyPrefix(connection, `bull:${prefix}`)
        await emptyPrefix(connection, prefix)
      }
    },
  }
}

/** Who asks for a transport by name gets no other one. */
async function needed(server: 'postgres' | 'redis'): Promise<string> {
  const url = await backend(server)
  if (url === null) throw new Error(`DURABLE_TEST_TRANSPORT=${REAL_TRANSPORT} needs ${server}`)
  return url
}

function chosen(name: string | undefined): (typeof NAMES)[number] | undefined {
  if (!name) return undefined
  const known = NAMES.find((one) => one === name)
  if (known) return known
  throw new Error(`DURABLE_TEST_TRANSPORT must be one of ${NAMES.join(', ')}, not "${name}"`)
}
