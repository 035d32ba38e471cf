/*
 * Servers of the suite's own, which may be restarted, crashed and cut off: nobody else's tests talk to them.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Database } from '@adonisjs/lucid/database'
import { type DatabaseLocation, openDatabase } from '../helpers/databases.ts'

const run = promisify(execFile)
const SCRIPT = join(import.meta.dirname, '..', '..', 'scripts', 'services.sh')

export type ServerDialect = 'postgres' | 'mysql'

const PORTS = { postgres: 'PG_PORT', mysql: 'MYSQL_PORT', redis: 'REDIS_PORT' } as const

interface Place {
  folder: string
  port: number
}

class OwnServer {
  readonly #service: keyof typeof PORTS
  readonly #folder: string
  readonly #env: NodeJS.ProcessEnv

  constructor(service: keyof typeof PORTS, { folder, port }: Place) {
    this.#service = service
    this.#folder = folder
    this.#env = {
      ...process.env,
      SERVICES_DIR: folder,
      KEEP_COMMITS: 'yes',
      [PORTS[service]]: String(port),
    }
  }

  async start(): Promise<void> {
    await this.#services('start', '--own')
  }

  /** Ends its connections and then itself; what was committed stays. */
  async stop(): Promise<void> {
    await this.#services('stop')
  }

  /** Ends it in the middle of its work; what was committed stays. */
  async crash(): Promise<void> {
    await this.#services('crash')
  }

  async remove(): Promise<void> {
    await this.stop()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #services(command: string, ...options: string[]): Promise<void> {
    await run(SCRIPT, [command, ...options, this.#service], { env: this.#env })
  }
}

export class Server extends OwnServer {
  readonly dialect: ServerDialect
  readonly location: DatabaseLocation

  private constructor(dialect: ServerDialect, place: Place) {
    super(dialect, place)
    this.dialect = dialect
    const user = dialect === 'postgres' ? 'postgres' : 'root'
    this.location = { dialect, target: `${dialect}://${user}@127.0.0.1:${place.port}/test` }
  }

  static async begin(dialect: ServerDialect): Promise<Server> {
    const server = new Server(dialect, await newPlace())
    await server.start()
    return server
  }

  /** Ends about half of the connections of others, in whatever they are doing. Answers how many. */
  async cutConnections(random: () => number): Promise<number> {
    const db = openDatabase(this.location)
    try {
      const others = await connectionsOf(db, this.dialect)
      const chosen = others.filter(() => random() < 0.5)
      const cut = this.dialect === 'postgres' ? 'select pg_terminate_backend(?)' : 'kill ?'
      // One that is gone already is no failure.
      for (const id of chosen) await db.rawQuery(cut, [id]).catch(() => {})
      return chosen.length
    } finally {
      await db.manager.closeAll()
    }
  }
}

/** It keeps what it was told, whatever ends it: appended to a file before it answers. */
export class RedisServer extends OwnServer {
  readonly url: string

  private constructor(place: Place) {
    super('redis', place)
    this.url = `redis://127.0.0.1:${place.port}`
  }

  static async begin(): Promise<RedisServer> {
    const server = new RedisServer(await newPlace())
    await server.start()
    return server
  }
}

async function newPlace(): Promise<Place> {
  return { folder: await mkdtemp(join(tmpdir(), 'durable-chaos-')), port: await freePort() }
}

async function connectionsOf(db: Database, dialect: ServerDialect): Promise<number[]> {
  if (dialect === 'postgres') {
    const { rows } = await db.rawQuery(
      "select pid from pg_stat_activity where datname = 'test' and pid <> pg_backend_pid()"
    )
    return (rows as { pid: number }[]).map(({ pid }) => pid)
  }
  const [rows] = await db.rawQuery(
    "select id from information_schema.processlist where db = 'test' and id <> connection_id()"
  )
  return (rows as { id: number }[]).map(({ id }) => id)
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}
