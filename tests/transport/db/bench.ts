/*
 * `db` transports over one database, as the processes of a fleet would have them: each with its
 * own pool where that is possible within one process.
 */
import type { Database } from '@adonisjs/lucid/database'
import { DbTransport, type DbTransportConfig } from '../../../src/transport/db/db_transport.ts'
import type {
  RunQueueUnderContract,
  TransportUnderContract,
} from '../../../src/testing/conformance.ts'
import type { TransportBench } from '../../../src/testing/contracts/transport.ts'
import { TableKeys } from '../../../src/transport/db/keys.ts'
import { TRANSPORT_TABLES } from '../../../src/transport/db/tables.ts'
import { Session } from '../../../src/sql/session.ts'
import { KEY_LIVES_MS } from '../../../src/transport/worker_keys.ts'
import { DEFAULT_PREFIX, keyNames } from '../../../src/wire/names.ts'
import { Sessions } from '../../../src/testing/contracts/transport_session.ts'
import { createDatabase, type Dialect, type TestDatabase } from '../../helpers/databases.ts'
import { STANDING_STILL } from '../standing_still.ts'

/** Short enough for a test, long enough for a busy machine. */
export const FAST = { pollIntervalMs: 10, closeTimeoutMs: 300 } as const

export interface DbBench extends TransportBench {
  readonly database: TestDatabase
  /** One for each pool. */
  readonly databases: Database[]
  /** `close`: how it is closed in the end, when its time is a test's. */
  open(options?: DbTransportConfig, close?: (transport: DbTransport) => Promise<void>): DbTransport
  cleanup(): Promise<void>
}

export async function dbBench(dialect: Dialect): Promise<DbBench> {
  const database = await createDatabase(dialect)
  const opened: { transport: DbTransport; close(transport: DbTransport): Promise<void> }[] = []
  const databases: Database[] = [database.db]
  const sessions = new Sessions(dialect)
  const open: DbBench['open'] = (options = {}, close = (transport) => transport.close()) => {
    // Two connections of one process to a SQLite file could only wait for each other.
    const shares = opened.length === 0 || dialect === 'sqlite'
    const db = shares ? database.db : database.connect()
    if (!shares) databases.push(db)
    const transport = new DbTransport({ db, ...FAST, ...options })
    opened.push({ transport, close })
    return transport
  }
  return {
    database,
    databases,
    open,
    async session({ namespace, deferred } = {}) {
      const errors: unknown[] = []
      const transport = open({ namespace, onError: (error) => errors.push(error) })
      return sessions.over(transport, errors, { namespace, deferred })
    },
    async cleanup() {
      await Promise.all(opened.map(({ transport, close }) => close(transport)))
      await database.cleanup()
    },
  }
}

/** The database of a contract: its cases come one after the other, each to empty tables. */
export class ContractDatabase {
  readonly #database: TestDatabase
  readonly #pools: Database[]

  constructor(database: TestDatabase) {
    this.#database = database
    this.#pools = [database.db]
  }

  get dialect(): Dialect {
    return this.#database.dialect
  }

  /** A transport of its own for each call, over one pool on SQLite. */
  opener(): (options: DbTransportConfig) => DbTransport {
    let opened = 0
    return (options) => {
      const index = this.dialect === 'sqlite' ? 0 : opened++
      const db = (this.#pools[index] ??= this.#database.connect())
      return new DbTransport({ db, ...FAST, tenantSubscribersCacheMs: 0, ...options })
    }
  }

  underContract(): TransportUnderContract {
    const open = this.opener()
    return {
      abilities: ['shared', 'leases', 'fence', 'concurrency', 'priority', 'descriptors', 'timers'],
      open: ({ standsStill = false, timers, ...settings }) =>
        open({ ...settings, timers: standsStill ? STANDING_STILL : timers }),
      advertise: async (token, instanceId, text) => {
        const keys = new TableKeys(new Session(this.#database.db), Date.now, async () => {})
        const key = keyNames(DEFAULT_PREFIX).workerDescriptor(token, instanceId)
        await keys.set(key, text, KEY_LIVES_MS)
      },
      cleanup: () => this.empty(),
    }
  }

  runQueues(): RunQueueUnderContract {
    const opener = this.opener()
    const opened: DbTransport[] = []
    return {
      supportsLeases: true,
      open: async ({ standsStill = false, onError = () => {}, ...settings } = {}) => {
        const timers = standsStill ? STANDING_STILL : undefined
        const transport = opener({ ...settings, onError, timers })
        opened.push(transport)
        return transport
      },
      cleanup: async () => {
        await Promise.all(opened.map((transport) => transport.close()))
        await this.empty()
      },
    }
  }

  async empty(): Promise<void> {
    for (const table of Object.values(TRANSPORT_TABLES)) {
      await this.#database.db.query().from(table).delete()
    }
  }

  async close(): Promise<void> {
    await this.#database.cleanup()
  }
}
