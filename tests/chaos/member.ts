/*
 * One process of the fleet, until it is killed or asked to stop: an engine with its worker loop and
 * schedules over the database it is told, or a worker that runs steps for the engines of others. It reports
 * what it cannot do on stderr; an error that nobody handles ends it.
 *
 *   member.ts '{"name":"m1","role":"engine","carrier":{…},"location":{…},"deploy":1,"skewMs":0,"leaseMs":3000}'
 */
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { runWorkerLoop } from '../../src/loop/main.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { openDatabase } from '../helpers/databases.ts'
import { openTransport, policyOf } from './carriers.ts'
import type { FromMember, MemberOptions, Request, ToMember } from './protocol.ts'
import { CATCHUP, registerAll, stepsOf, WINDOW_MS } from './workflows.ts'

const POLL_MS = 200
const DRAIN_MS = 5_000

const options = JSON.parse(process.argv[2]) as MemberOptions
const { name, role, carrier, location, deploy, skewMs, leaseMs } = options
const say = (text: string) => void process.stderr.write(`${name}: ${text}\n`)
const tell = (message: FromMember) => void process.send?.(message)

const db = openDatabase(location)
const clock = () => Date.now() + skewMs
const transport = await openTransport(carrier, { db, name, clock, leaseMs, say })
const stop = Promise.withResolvers<void>()
const engine = role === 'engine' ? makeEngine() : undefined
const stopped = engine ? drive(engine) : serve()

function makeEngine(): WorkflowEngine {
  const made = new WorkflowEngine({
    store: new LucidStateStore(db),
    transport,
    clock,
    instanceId: name,
    leaseMs,
    reconcileMs: 5_000,
    compensationRetries: policyOf(carrier).retries,
    logger: { warn: say, error: (what, error) => say(`${what}: ${String(error)}`) },
  })
  registerAll({ engine: made, db, deploy, carrier })
  return made
}

async function drive(driven: WorkflowEngine): Promise<void> {
  await runWorkerLoop(driven, {
    intervalMs: POLL_MS,
    stopSignal: stop.promise,
    drainTimeoutMs: DRAIN_MS,
    schedules: [
      { key: 'window', workflow: 'window', everyMs: WINDOW_MS, backfill: { maxCatchup: CATCHUP } },
    ],
    logger: { info: () => {}, error: say },
  })
}

async function serve(): Promise<void> {
  for (const [step, handler] of Object.entries(stepsOf(db))) transport.handle?.(step, handler)
  await stop.promise
}

async function answer({ id, verb, args }: Request): Promise<void> {
  try {
    const call = engine![verb].bind(engine) as (...args: unknown[]) => Promise<unknown>
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
await transport.close?.()
await db.manager.closeAll()
process.exit(0)
