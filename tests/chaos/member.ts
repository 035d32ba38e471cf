/*
 * One process of the fleet: an engine with its worker and schedules over the database it is told, until it
 * is killed or asked to stop. It reports what it cannot do on stderr; an error that nobody handles ends it.
 *
 *   member.ts '{"name":"m1","location":{…},"deploy":1,"skewMs":0,"leaseMs":3000}'
 */
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { runWorkerLoop } from '../../src/loop/main.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import { openDatabase } from '../helpers/databases.ts'
import type { FromMember, MemberOptions, Request, ToMember } from './protocol.ts'
import { CATCHUP, registerAll, WINDOW_MS } from './workflows.ts'

const POLL_MS = 200
const DRAIN_MS = 5_000

const { name, location, deploy, skewMs, leaseMs } = JSON.parse(process.argv[2]) as MemberOptions
const say = (text: string) => void process.stderr.write(`${name}: ${text}\n`)
const tell = (message: FromMember) => void process.send?.(message)

const db = openDatabase(location)
const engine = new WorkflowEngine({
  store: new LucidStateStore(db),
  transport: new InMemoryTransport(),
  clock: () => Date.now() + skewMs,
  instanceId: name,
  leaseMs,
  reconcileMs: 5_000,
  logger: { warn: say, error: (what, error) => say(`${what}: ${String(error)}`) },
})
registerAll({ engine, db, deploy })
const stop = Promise.withResolvers<void>()
const stopped = runWorkerLoop(engine, {
  intervalMs: POLL_MS,
  stopSignal: stop.promise,
  drainTimeoutMs: DRAIN_MS,
  schedules: [
    { key: 'window', workflow: 'window', everyMs: WINDOW_MS, backfill: { maxCatchup: CATCHUP } },
  ],
  logger: { info: () => {}, error: say },
})

async function answer({ id, verb, args }: Request): Promise<void> {
  const call = engine[verb].bind(engine) as (...args: unknown[]) => Promise<unknown>
  try {
    tell({ id, result: (await call(...args)) ?? null })
  } catch (error) {
    const { name: kind, message } = error as Error
    tell({ id, error: { name: kind, message } })
  }
}

process.on('message', (message: ToMember) => {
  if (message === 'stop') stop.resolve()
  else void answer(message)
})
// Nobody is left to kill it.
process.on('disconnect', () => process.exit())
tell('ready')
await stopped
await db.manager.closeAll()
process.exit(0)
