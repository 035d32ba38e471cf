/*
 * A run that does a bit of everything, executed over a driver with a fault in one statement, until it ends:
 * callers repeat what was refused, polls come by, leases lapse, and where the process died another one
 * takes over. What must hold afterwards is judged here.
 */
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import type { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import { DURABLE_TABLES } from '../../../src/store/lucid/schema/tables.ts'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { isTerminalStatus } from '../../../src/types/run.ts'
import {
  createDatabase,
  type Dialect,
  openDatabase,
  type TestDatabase,
} from '../../helpers/databases.ts'
import { World } from '../../helpers/engines.ts'
import { type Fault, FaultyDriver, type Strike } from './faulty_driver.ts'

const LEDGER = 'fault_ledger'
const RUN = 'journey'
const LAPSE_MS = 31_000
const PASSES = 30
/** A lease that lapsed, or a repeated send, gives a body one more execution. */
const MOST_EXECUTIONS = 2
const OUTPUT = ['early', 1, 2, 3, 'late', 10, 6]

/** One database for all journeys of a dialect, emptied before each. */
export class Site {
  readonly dialect: Dialect
  readonly database: TestDatabase
  readonly store: LucidStateStore

  private constructor(dialect: Dialect, database: TestDatabase) {
    this.dialect = dialect
    this.database = database
    this.store = new LucidStateStore(database.db)
  }

  static async open(dialect: Dialect): Promise<Site> {
    const site = new Site(dialect, await createDatabase(dialect))
    await site.store.ensureSchema()
    await site.database.db.connection().schema.createTable(LEDGER, (table) => {
      table.string('entry').notNullable()
    })
    return site
  }

  async empty(): Promise<void> {
    for (const table of [...Object.values(DURABLE_TABLES), LEDGER]) {
      await this.database.db.from(table).delete()
    }
  }

  async ledger(): Promise<string[]> {
    const rows = await this.database.db.from(LEDGER).select('entry')
    return rows.map(({ entry }) => String(entry))
  }
}

export interface Outcome {
  /** What is wrong with it; nothing, when all is well. */
  complaints: string[]
  /** Statements of the engine over the faulty driver. */
  statements: number
  /** The statement that was struck. */
  struck?: string
  /** How often each body ran. */
  executions: ReadonlyMap<string, number>
}

/** Callers outside: each asks until it was answered. */
class Caller {
  answered = false
  #asking = false
  readonly #ask: (engine: WorkflowEngine) => Promise<unknown>

  constructor(ask: (engine: WorkflowEngine) => Promise<unknown>) {
    this.#ask = ask
  }

  /** A process that died does not answer: its successor is asked again. */
  insist(engine: WorkflowEngine, repeat: boolean): void {
    if (this.answered || (this.#asking && !repeat)) return
    this.#asking = true
    void this.#ask(engine).then(
      () => (this.answered = true),
      () => (this.#asking = false)
    )
  }
}

export async function travel(site: Site, strike?: Strike): Promise<Outcome> {
  await site.empty()
  const rejections: unknown[] = []
  const collect = (reason: unknown) => void rejections.push(reason)
  process.on('unhandledRejection', collect)
  const driver = new FaultyDriver(site.dialect)
  const db = openDatabase(site.database.location)
  driver.install(db)
  const world = new World(site.store)
  const executions = new Map<string, number>()
  const count = (name: string) => void executions.set(name, (executions.get(name) ?? 0) + 1)
  const open = (store: LucidStateStore) => {
    const engine = world.engine({ store, remoteRedispatchMs: LAPSE_MS, reconcileMs: LAPSE_MS })
    register(engine, count)
    return engine
  }
  try {
    // Its connection is opened before the count begins.
    await db.rawQuery(site.dialect === 'sqlite' ? 'PRAGMA busy_timeout = 0' : 'SELECT 1')
    let engine = open(new LucidStateStore(db))
    let died = false
    driver.arm(strike, () => {
      died = true
      void world.crash(engine)
    })
    const start = new Caller((e) => e.start('journey', null, RUN))
    const early = new Caller((e) => e.signal('early', 'early'))
    const late = new Caller((e) => e.signal('late', 'late'))
    for (let pass = 0; pass < PASSES; pass++) {
      const replaced = died
      if (died) engine = open(site.store)
      died = false
      start.insist(engine, replaced)
      await world.quiet()
      early.insist(engine, replaced)
      if (pass > 1) late.insist(engine, replaced)
      await world.quiet()
      await world.time.advance(LAPSE_MS)
      const polls = [engine.recoverIncomplete(), engine.runPending(), engine.resumeDueTimers()]
      void Promise.allSettled(polls)
      await world.quiet()
      const run = await site.store.getRun(RUN)
      if (run && isTerminalStatus(run.status) && late.answered) break
    }
    // Of a connection or a process that is gone only the turn hears.
    const answers: Fault[] = ['refused', 'again', 'applied']
    const userHeard =
      !!strike && answers.includes(strike.fault) && !!driver.struck?.includes(LEDGER)
    const complaints = await judge(site, executions, userHeard)
    // Rejections are told when the microtasks have run.
    await world.quiet()
    complaints.push(...rejections.map((reason) => `unhandled: ${String(reason)}`))
    await world.close()
    return { complaints, statements: driver.texts.length, struck: driver.struck, executions }
  } catch (error) {
    const complaints = [`the journey broke off: ${String(error)}`]
    return { complaints, statements: driver.texts.length, struck: driver.struck, executions }
  } finally {
    process.off('unhandledRejection', collect)
    await db.manager.closeAll().catch(() => {})
  }
}

function register(engine: WorkflowEngine, count: (name: string) => void): void {
  engine.handle('remote', (input) => {
    count('remote')
    return input
  })
  engine.register('child', '1', async (ctx, n: number) =>
    ctx.localStep('inner', () => {
      count('inner')
      return n * 2
    })
  )
  engine.register('journey', '1', async (ctx) => {
    const early = await ctx.waitForSignal('early')
    const local = await ctx.localStep('local', () => {
      count('local')
      return 1
    })
    const book = async (tx: unknown) => {
      count('book')
      const client = tx as TransactionClientContract
      await client.insertQuery().table(LEDGER).insert({ entry: 'booked' })
      return 2
    }
    // A statement of user code that fails is its own affair.
    const booked = await ctx.transaction('book', book).catch(() => ctx.transaction('again', book))
    const remote = await ctx.step('remote', 3)
    await ctx.sleep(1000)
    const late = await ctx.waitForSignal('late')
    const child = await ctx.child('child', 5)
    const last = await ctx.localStep('last', () => {
      count('last')
      return 6
    })
    return [early, local, booked, remote, late, child, last]
  })
}

async function judge(
  site: Site,
  executions: ReadonlyMap<string, number>,
  refusedUser: boolean
): Promise<string[]> {
  const complaints: string[] = []
  const runs = await site.store.listRuns({})
  if (runs.length !== 2) complaints.push(`${runs.length} runs instead of two`)
  for (const { id, status, error, lockedBy } of runs) {
    if (status !== 'completed') complaints.push(`${id} is ${status}: ${JSON.stringify(error)}`)
    if (lockedBy) complaints.push(`${id} is still held`)
  }
  const output = JSON.stringify(runs.find(({ id }) => id === RUN)?.output)
  if (output !== JSON.stringify(OUTPUT)) complaints.push(`output ${output}`)
  const ledger = await site.ledger()
  if (ledger.length !== 1) complaints.push(`${ledger.length} entries in the ledger`)
  for (const name of ['local', 'book', 'remote', 'inner', 'last']) {
    const times = executions.get(name) ?? 0
    if (times < 1 || times > MOST_EXECUTIONS) complaints.push(`${name} ran ${times} times`)
  }
  for (const { runId, token } of await site.store.listSignalWaiters('')) {
    complaints.push(`${runId} still waits for ${token}`)
  }
  for (const { name, status } of await site.store.listCheckpoints(RUN)) {
    if (status !== (name === 'book' && refusedUser ? 'failed' : 'completed')) {
      complaints.push(`${name} is ${status}`)
    }
  }
  return complaints
}
