/*
 * The process that is killed. It hosts one or more engines, each with an in-process transport and a
 * worker loop of its own, over the database it is told to open, and does what its parent says.
 *
 *   child.ts '{"life":"a1","log":"/tmp/…/log"}'
 */
import { setTimeout as pause } from 'node:timers/promises'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { runWorkerLoop } from '../../src/loop/main.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import { type DatabaseLocation, openDatabase } from '../helpers/databases.ts'
import { Boundaries } from './boundaries.ts'
import { APPROVAL, type Job, registerCheckout } from './checkout.ts'
import { approvalToken, LogWriter, type Notice, type OpenHost, type Request } from './protocol.ts'

const { life, log: logPath } = JSON.parse(process.argv[2]) as { life: string; log: string }
const log = new LogWriter(logPath, life)
const databases = new Map<string, ReturnType<typeof openDatabase>>()
const hosts = new Map<string, Host>()
const CALLS_AT_ONCE = 3
const NEVER = new Promise<never>(() => {})

function tell(notice: Notice): void {
  process.send?.(notice)
}

/** SQLite databases are one per host, a Postgres one is shared. */
function databaseAt(location: DatabaseLocation) {
  const key = JSON.stringify(location)
  const known = databases.get(key)
  if (known) return known
  const db = openDatabase(location)
  databases.set(key, db)
  return db
}

async function closeDatabase(location: DatabaseLocation): Promise<void> {
  const key = JSON.stringify(location)
  const db = databases.get(key)
  databases.delete(key)
  await db?.manager.closeAll()
}

class Host {
  readonly engine: WorkflowEngine
  readonly #location: DatabaseLocation
  readonly #boundaries: Boundaries
  readonly #stop = Promise.withResolvers<void>()
  readonly #loop: Promise<number>
  readonly #name: string

  constructor(options: OpenHost) {
    const { host, location, target, slack, announce, continuations, leaseMs, pollMs } = options
    this.#name = host
    this.#location = location
    const base = new LucidStateStore(databaseAt(location))
    this.#boundaries = new Boundaries({
      base,
      target,
      slack,
      announce: (text) => announce && log.write({ host, at: 'boundary', text }),
      onHeld: () => tell({ is: 'held', host }),
      onWaits: (runId) => tell({ is: 'waits', host, runId }),
    })
    this.engine = new WorkflowEngine({
      store: this.#boundaries.store,
      transport: new InMemoryTransport(),
      instanceId: `${life}-${host}`,
      namespace: host,
      leaseMs,
      continuations: continuations ? {} : false,
      logger: { warn: () => {}, error: (what, error) => this.#report(what, error) },
    })
    registerCheckout(this.engine, {
      begin: (job, step) => this.#write('begin', job, step),
      end: (job, step) => this.#write('end', job, step),
    })
    this.engine.subscribe(({ type, runId }) => {
      if (this.#boundaries.held) return
      if (type === 'run.completed' || type === 'run.failed') tell({ is: 'ended', host, runId })
    })
    this.#loop = runWorkerLoop(this.engine, {
      intervalMs: pollMs,
      stopSignal: this.#stop.promise,
      sleep: (ms) => this.#pause(ms),
      logger: { info: () => {}, error: (text) => this.#report('worker loop', text) },
    })
  }

  async close(): Promise<void> {
    this.#stop.resolve()
    await this.#loop
    if (this.#location.dialect === 'sqlite') await closeDatabase(this.#location)
  }

  /** Polls that a slow machine has not answered yet are not followed by more. */
  async #pause(ms: number): Promise<void> {
    do {
      if (this.#boundaries.held) await NEVER
      await pause(ms)
    } while (this.#boundaries.inFlight > CALLS_AT_ONCE)
  }

  /** A host that was held leaves no trace any more, as if its process were dead already. */
  async #write(at: 'begin' | 'end', { order, number }: Job, step: string): Promise<void> {
    if (this.#boundaries.held) return NEVER
    log.write({ host: this.#name, at, runId: order.runId, step, number })
  }

  #report(what: string, error: unknown): void {
    if (this.#boundaries.held) return
    log.write({ host: this.#name, at: 'error', text: `${what}: ${String(error)}` })
  }
}

async function perform(request: Request): Promise<void> {
  if (request.do === 'open') {
    hosts.set(request.host, new Host(request))
    return
  }
  const host = hosts.get(request.host)
  // Its run ended before this life.
  if (!host && request.do === 'close') return
  if (!host) throw new Error(`no host ${request.host} in ${life}`)
  switch (request.do) {
    case 'start': {
      const { runId, bad } = request
      await host.engine.start('checkout', { runId, bad }, runId)
      return
    }
    case 'approve':
      await host.engine.signal(approvalToken(request.runId), APPROVAL)
      return
    case 'close':
      hosts.delete(request.host)
      await host.close()
  }
}

process.on('message', (request: Request) => {
  perform(request).then(
    () => tell({ is: 'ack', id: request.id }),
    (error) => tell({ is: 'ack', id: request.id, error: String(error) })
  )
})
// Nobody is left to kill it.
process.on('disconnect', () => process.exit())
tell({ is: 'ready' })
