/*
 * Reads what is left of a play and has it judged; looks too whether anything was left behind.
 */
import type { Database } from '@adonisjs/lucid/database'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import type { WorkflowRun } from '../../src/types/run.ts'
import { type Asked, judge } from './judge.ts'
import { readLedger } from './ledger.ts'

const ENTITY = 'entity:'
const ACCOUNT = 'entity:account:'

/** `repeated` are tokens and ids of calls that may have arrived twice. Answers what is wrong. */
export async function verdicts(
  db: Database,
  asked: Asked[],
  repeated: Set<string>
): Promise<string[]> {
  const store = new LucidStateStore(db)
  const engine = new WorkflowEngine({ store })
  const all = await store.listRuns({})
  const sums: Record<string, number | undefined> = {}
  for (const { id } of all) {
    if (!id.startsWith(ACCOUNT)) continue
    const key = id.slice(ACCOUNT.length).split('~')[0]
    const state = await engine.getEntityState<{ sum: number }>('account', key)
    sums[key] = state?.sum
  }
  const runs = all.filter(({ id }) => !id.startsWith(ENTITY))
  return [
    ...judge({ asked, runs, ledger: await readLedger(db), sums }),
    ...(await remains(db, all, repeated)),
  ]
}

/** Leases, waits and buffers whose run is over; a call that arrived twice may leave its second payload. */
async function remains(db: Database, all: WorkflowRun[], repeated: Set<string>): Promise<string[]> {
  const held = all.filter(({ lockedBy }) => lockedBy)
  const waiters = await db.from('durable_signal_waiters').select('token', 'run_id')
  const signals = await db.from('durable_buffered_signals').select('token')
  const events = await db.from('durable_buffered_events').select('name', 'payload')
  const checkpoints = await db
    .from('durable_step_checkpoints')
    .whereIn('status', ['pending', 'running'])
    .select('run_id', 'seq', 'name', 'status')
  const again = (token: string) => [...repeated].some((id) => token.includes(id))
  return [
    ...held.map(({ id, lockedBy }) => `${id} is held by ${lockedBy}`),
    // An entity waits for its next operation.
    ...waiters
      .filter((row) => !row.run_id.startsWith(ENTITY))
      .map((row) => `a wait of ${row.run_id} for ${row.token} is left`),
    ...signals.filter((row) => !again(row.token)).map((row) => `a signal for ${row.token} is left`),
    ...events
      .filter((row) => !again(JSON.stringify(row.payload)))
      .map((row) => `an event ${row.name} is left: ${JSON.stringify(row.payload)}`),
    ...checkpoints
      .filter((row) => !row.run_id.startsWith(ENTITY))
      .map((row) => `${row.name} at ${row.seq} of ${row.run_id} is ${row.status}`),
  ]
}
