/*
 * What the state-store cases share: the shape of a case, rows to write, and comparisons. A case gets a
 * store of its own, empty, and throws when its sentence does not hold. No test runner, no clock: every
 * time is a constant.
 */
import assert from 'node:assert/strict'
import type { OptionalMember } from '../../../store/ports/members.ts'
import type { OptionalRoles, RequiredRoles } from '../../../store/state_store.ts'
import type { SignalWaiter, StepCheckpoint } from '../../../types/checkpoint.ts'
import type { WorkflowRun } from '../../../types/run.ts'

/** The store of a case. The optional members that the case requires are there. */
export type StoreUnderTest = RequiredRoles & OptionalRoles

export interface StoreCase {
  /** The sentence that holds. */
  name: string
  /** Optional members it needs; the case does not apply to a store without them. */
  requires?: OptionalMember[]
  /** The members it requires must be there: without them the case fails. */
  kit?: true
  /** What a driver may declare that it cannot do. */
  needs?: 'tagFilter' | 'asyncTransaction'
  run(store: StoreUnderTest): Promise<void>
}

/** An instant like those of a real clock: too large for 32 bits. */
export const T0 = Date.UTC(2026, 0, 15, 8, 30)

export const at = (ms: number): Date => new Date(T0 + ms)

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

export const pendingRow = (
  runId: string,
  seq: number,
  fields: Partial<StepCheckpoint> = {}
): StepCheckpoint => makeRow(runId, seq, { status: 'pending', input: { seq }, ...fields })

export const makeWaiter = (
  token: string,
  runId: string,
  seq: number,
  fields: Partial<SignalWaiter> = {}
): SignalWaiter => ({ token, runId, seq, ...fields })

/** Creates runs one after the other. */
export async function createRuns(store: RequiredRoles, ...runs: WorkflowRun[]): Promise<void> {
  for (const run of runs) await store.createRun(run)
}

/** Creates a run that `owner` executes as turn `turn`. */
export async function createHeldRun(
  store: RequiredRoles,
  id: string,
  fields: Partial<WorkflowRun> = {}
): Promise<void> {
  await store.createRun(
    makeRun(id, {
      status: 'running',
      lockedBy: 'me',
      lockedUntil: T0 + 30_000,
      turns: 1,
      ...fields,
    })
  )
}

export async function saveRows(store: RequiredRoles, ...rows: StepCheckpoint[]): Promise<void> {
  for (const row of rows) await store.saveCheckpoint(row)
}

export const ids = (runs: { id: string }[]): string[] => runs.map((run) => run.id)
export const seqs = (rows: { seq: number }[]): number[] => rows.map((row) => row.seq)
export const tokens = (waiters: { token: string }[]): string[] =>
  waiters.map((waiter) => waiter.token).sort()
export const sizeOf = (list: unknown[]): number => list.length
export const byText = (a: string, b: string): number => (a < b ? -1 : 1)
export const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** Compares the named fields; `undefined` means that the field is not there. */
export function matches<T extends object>(
  actual: T | null | undefined,
  expected: Partial<T>
): void {
  assert.ok(actual, 'there is no row')
  for (const key of Object.keys(expected) as (keyof T)[]) {
    assert.deepEqual(actual[key], expected[key], `field "${String(key)}"`)
  }
}

/** Compares whole rows; a field that is `undefined` counts as not there. */
export function same<T>(actual: T, expected: T): void {
  assert.deepEqual(defined(actual), defined(expected))
}

export function sameRows(actual: StepCheckpoint[], expected: StepCheckpoint[]): void {
  const order = (a: StepCheckpoint, b: StepCheckpoint) =>
    a.runId === b.runId ? a.seq - b.seq : byText(a.runId, b.runId)
  same([...actual].sort(order), [...expected].sort(order))
}

/** Exactly one of the answers is true. */
export function oneWinner(answers: boolean[]): void {
  assert.equal(answers.filter(Boolean).length, 1, 'exactly one caller wins')
}

export async function runOf(store: RequiredRoles, id: string): Promise<WorkflowRun> {
  const run = await store.getRun(id)
  assert.ok(run, `run "${id}" is not there`)
  return run
}

/** The payloads buffered for a token, oldest first; taking them. */
export async function takeAllBuffered(store: RequiredRoles, token: string): Promise<unknown[]> {
  const payloads: unknown[] = []
  for (;;) {
    const taken = await store.takeBufferedSignal(token)
    if (!taken) return payloads
    payloads.push(taken.payload)
  }
}

function defined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(defined)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  const entries = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(entries.map(([key, each]) => [key, defined(each)]))
}
