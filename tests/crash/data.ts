/*
 * The data beneath the children, as their parent sees it: creating it, reading it after a kill, and making
 * sure that nothing a dead child sent is still on its way.
 */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '@adonisjs/lucid/database'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { DURABLE_TABLES } from '../../src/store/lucid/schema/tables.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { WorkflowRun } from '../../src/types/run.ts'
import {
  createDatabase,
  type DatabaseLocation,
  openDatabase,
  type TestDatabase,
} from '../helpers/databases.ts'
import { approvalToken, LEDGER, LogReader } from './protocol.ts'

export type CrashDialect = 'sqlite' | 'postgres'

/** Everything that is stored about one run. */
export interface Stored {
  run: WorkflowRun | null
  rows: StepCheckpoint[]
  ledger: { entry: string; number: string }[]
  waiters: number
  buffered: number
}

const GONE_MS = 10_000

export class CrashData {
  readonly dialect: CrashDialect
  readonly #template: TestDatabase
  readonly #folder: string
  readonly #opened = new Map<string, Database>()
  /** What all children over these data did. */
  readonly log: LogReader
  #files = 0

  private constructor(dialect: CrashDialect, template: TestDatabase, folder: string) {
    this.dialect = dialect
    this.#template = template
    this.#folder = folder
    this.log = new LogReader(join(folder, 'log'))
  }

  static async create(dialect: CrashDialect): Promise<CrashData> {
    const template = await createDatabase(dialect)
    const store = new LucidStateStore(template.db)
    await store.ensureSchema()
    await template.db.connection().schema.createTable(LEDGER, (table) => {
      table.string('run_id').notNullable().index()
      table.string('entry').notNullable()
      table.string('number').notNullable()
    })
    const folder = await mkdtemp(join(tmpdir(), 'durable-crash-'))
    if (dialect === 'sqlite') await template.db.manager.closeAll()
    return new CrashData(dialect, template, folder)
  }

  /**
   * Where a host keeps its data: a file of its own on SQLite, because a host that stopped inside a
   * transaction locks all of it; the one schema on Postgres, under a name that tells the child's sessions.
   */
  async allocate(): Promise<DatabaseLocation> {
    const { location } = this.#template
    if (this.dialect === 'postgres') return location
    const target = join(this.#folder, `${++this.#files}.sqlite`)
    await copyFile(location.target, target)
    return { ...location, target }
  }

  /** The location as a life opens it. */
  forLife(location: DatabaseLocation, life: string): DatabaseLocation {
    if (this.dialect === 'sqlite') return location
    const url = new URL(location.target)
    url.searchParams.set('application_name', this.#session(life))
    return { ...location, target: url.href }
  }

  /** Resolves when the server has finished with a dead life: what it had sent has landed or is gone. */
  async sessionsGone(life: string): Promise<void> {
    if (this.dialect === 'sqlite') return
    const giveUpAt = performance.now() + GONE_MS
    for (;;) {
      const { rows } = await this.#template.db.rawQuery(
        'select count(*)::int as open from pg_stat_activity where application_name = ?',
        [this.#session(life)]
      )
      if (rows[0].open === 0) return
      if (performance.now() > giveUpAt) throw new Error(`sessions of ${life} do not end`)
      await pause(10)
    }
  }

  async read(location: DatabaseLocation, runId: string): Promise<Stored> {
    const db = this.#open(location)
    const store = new LucidStateStore(db)
    // A payload moves from the buffer to its row: read in this order it is not missed on its way.
    const buffered = await db
      .from(DURABLE_TABLES.bufferedSignals)
      .where('token', approvalToken(runId))
    const rows = await store.listCheckpoints(runId)
    const waiters = await store.listSignalWaitersByRunIds([runId])
    const ledger = await db.from(LEDGER).where('run_id', runId)
    const run = await store.getRun(runId)
    return { run, rows, ledger, waiters: waiters.length, buffered: buffered.length }
  }

  /** Closes what the parent holds of a SQLite file. */
  async forget(location: DatabaseLocation): Promise<void> {
    if (this.dialect === 'postgres') return
    await this.#opened.get(location.target)?.manager.closeAll()
    this.#opened.delete(location.target)
  }

  async remove(): Promise<void> {
    for (const db of this.#opened.values()) await db.manager.closeAll()
    await this.#template.cleanup()
    await rm(this.#folder, { recursive: true, force: true })
  }

  #session(life: string): string {
    return `crash-${process.pid}-${life}`
  }

  #open(location: DatabaseLocation): Database {
    if (this.dialect === 'postgres') return this.#template.db
    let db = this.#opened.get(location.target)
    if (!db) this.#opened.set(location.target, (db = openDatabase(location)))
    return db
  }
}
