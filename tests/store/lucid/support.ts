/*
 * What the specs of the Lucid store share: a provisioned store, rows to write, and times.
 */
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import type { StepCheckpoint } from '../../../src/types/checkpoint.ts'
import type { WorkflowRun } from '../../../src/types/run.ts'
import {
  createDatabase,
  type DatabaseOptions,
  type Dialect,
  reachableDialects,
} from '../../helpers/databases.ts'

export const T0 = 1_760_000_000_000
export const ms = (offset: number): number => T0 + offset
export const at = (offset: number): Date => new Date(T0 + offset)

/** A store over a database of its own, gone after the test. */
export async function provisionedStore(
  dialect: Dialect,
  cleanup: (fn: () => Promise<void>) => void,
  options?: DatabaseOptions
) {
  const database = await createDatabase(dialect, options)
  cleanup(database.cleanup)
  const store = new LucidStateStore(database.db)
  await store.ensureSchema()
  return { ...database, store }
}

/** One test a dialect, with a store of its own; `of` are the dialects that have what it is about. */
export async function onEachDialect(
  title: string,
  run: (
    context: Awaited<ReturnType<typeof provisionedStore>>,
    assert: typeof import('@japa/assert').Assert.prototype
  ) => Promise<void>,
  of: Dialect[] = ['sqlite', 'postgres', 'mysql']
): Promise<void> {
  const reachable = await reachableDialects()
  for (const dialect of reachable.filter((each) => of.includes(each))) {
    test(`${title} (${dialect})`, async ({ assert, cleanup }) => {
      await run(await provisionedStore(dialect, cleanup), assert)
    }).timeout(30_000)
  }
}

export const makeRun = (id: string, fields: Partial<WorkflowRun> = {}): WorkflowRun => ({
  id,
  workflow: 'orders',
  workflowVersion: '1',
  status: 'pending',
  input: { order: id },
  createdAt: at(0),
  updatedAt: at(0),
  ...fields,
})

/** A run that `me` executes as its first turn. */
export const heldRun = (id: string, fields: Partial<WorkflowRun> = {}): WorkflowRun =>
  makeRun(id, { status: 'running', lockedBy: 'me', lockedUntil: ms(60_000), turns: 1, ...fields })

export const makeRow = (
  runId: string,
  seq: number,
  fields: Partial<StepCheckpoint> = {}
): StepCheckpoint => ({
  runId,
  seq,
  name: `step-${seq}`,
  kind: 'remote',
  stepId: `${runId}:${seq}`,
  status: 'completed',
  attempts: 1,
  enqueuedAt: at(1),
  startedAt: at(2),
  finishedAt: at(3),
  ...fields,
})

/** A wait for a token at a position, as a turn commits it. */
export const makeWait = (runId: string, seq: number, token: string) => ({
  waiter: { token, runId, seq, createdAt: at(1) },
  row: makeRow(runId, seq, { kind: 'signal', name: `signal:${token}` }),
})

/** What every commit of the first turn of a held run says. */
export const asTurn = (runId: string) => ({ runId, owner: 'me', turn: 1, nowMs: ms(10) })
