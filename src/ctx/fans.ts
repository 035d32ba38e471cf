/*
 * Fans: `ctx.all` and `ctx.allSettled` over children or over one step. The whole block of positions is
 * taken at once, in input order, whatever the concurrency; the body sees one answer.
 */
import { checkOptions, OPTIONS } from '../authoring/options.ts'
import { mergePolicy, stepConfigOf, stepNameOf } from '../authoring/step_ref.ts'
import { workflowName } from '../authoring/workflow_ref.ts'
import { type GatherItemFailure, GatherError, InvalidArgumentError } from '../errors.ts'
import { isFinalFailure, maxAttempts } from '../foundation/backoff.ts'
import { Heap } from '../foundation/heap.ts'
import { fanChildIdOf, fanGroupOf, stepIdOf } from '../foundation/ids.ts'
import type { CallCommand, ChildCommand, FanCommand } from '../replay/commands.ts'
import { marks } from '../replay/guard.ts'
import type { Reading, RowsOfCall } from '../replay/open_await.ts'
import type { CompletionEnvelope, StepCheckpoint } from '../types/checkpoint.ts'
import type { WorkflowCtx } from '../types/ctx.ts'
import type { AllOptions, AllStepsOptions, Settled } from '../types/fan.ts'
import type { StepRef } from '../types/step.ts'
import type { WorkflowRef } from '../types/workflow.ts'
import { checkDispatch, checkPolicy } from './policy.ts'
import type { Scope } from './scope.ts'

type Target = WorkflowRef | StepRef<never, unknown>
type Options = AllOptions & AllStepsOptions

/** What one member came to; undefined while it is not over. */
type MemberEnd =
  | { ok: true; value: unknown; row: StepCheckpoint }
  | { ok: false; failure: GatherItemFailure; row: StepCheckpoint }

/** How members are started and read: as children or as steps. */
interface Members {
  command(index: number, seq: number, at: Placement): CallCommand | ChildCommand
  end(index: number, row: StepCheckpoint, at: Placement): MemberEnd | undefined
  /** When an open member wants its performer again. */
  dueAt(row: StepCheckpoint): number | undefined
}

interface Placement {
  runId: string
  firstSeq: number
  group: string
  waveOf(index: number): number | undefined
}

export function fanPrimitives(scope: Scope): Pick<WorkflowCtx, 'all' | 'allSettled'> {
  const fan = (
    primitive: 'all' | 'allSettled',
    target: Target,
    inputs: unknown[],
    options: Options
  ) =>
    scope.primitive(primitive, () => {
      if (!Array.isArray(inputs)) {
        throw new InvalidArgumentError(`ctx.${primitive}: the inputs`, 'must be an array')
      }
      const step = typeof target === 'string' ? undefined : stepNameOf(target)
      const known = step === undefined ? OPTIONS.childFan : OPTIONS.stepFan
      checkOptions(`ctx.${primitive}`, options, known)
      checkConcurrency(primitive, options.concurrency)
      checkMode(primitive, options.mode)
      const members =
        step === undefined
          ? childMembers(scope, target as WorkflowRef, inputs)
          : stepMembers(scope, primitive, step, target as StepRef<never, unknown>, inputs, options)
      if (inputs.length === 0) return Promise.resolve([])
      return openFan(scope, primitive, members, inputs.length, options)
    })
  return {
    all: ((target: Target, inputs: unknown[], options: Options = {}) =>
      fan('all', target, inputs, options)) as WorkflowCtx['all'],
    allSettled: ((target: Target, inputs: unknown[], options: Options = {}) =>
      fan(
        'allSettled',
        target,
        inputs,
        isObject(options) ? { ...options, mode: 'waitAll' } : options
      )) as WorkflowCtx['allSettled'],
  }
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null

function openFan(
  scope: Scope,
  primitive: 'all' | 'allSettled',
  members: Members & { kind: 'child' | 'step' },
  size: number,
  options: Options
): Promise<unknown[]> {
  const { concurrency, mode } = options
  const failFast = mode === 'failFast'
  const waves = waveShape(members.kind, size, concurrency)
  return scope.open({
    primitive,
    width: size,
    at: (firstSeq) => {
      const at: Placement = {
        runId: scope.runId,
        firstSeq,
        group: fanGroupOf(firstSeq, { size, waves: concurrency !== undefined, failFast }),
        waveOf: (index) =>
          concurrency === undefined ? undefined : Math.floor(index / waves.waveSize),
      }
      const settled = primitive === 'allSettled'
      const reader = new FanReader(members, at, size, { failFast, settled })
      const command: FanCommand = {
        kind: 'fan',
        seq: firstSeq,
        group: at.group,
        size,
        failFast,
        oldest: 0,
        folded: 0,
        ...waves,
        member: (index) => members.command(index, firstSeq + index, at),
      }
      return {
        marks: { length: size, at: (index) => memberMark(members, index, at) },
        command,
        read: (rows, changed) => reader.read(rows, changed),
      }
    },
  })
}

function waveShape(kind: 'child' | 'step', size: number, concurrency: number | undefined) {
  if (concurrency === undefined) return { waveSize: size, wavesAtOnce: 1 }
  if (kind === 'step') return { waveSize: concurrency, wavesAtOnce: 1 }
  return {
    waveSize: Math.max(1, Math.floor(concurrency / 2)),
    wavesAtOnce: concurrency === 1 ? 1 : 2,
  }
}

function memberMark(members: Members, index: number, at: Placement) {
  const command = members.command(index, at.firstSeq + index, at)
  return command.kind === 'child' ? marks.child(command.childId)[0] : marks.step(command.name)[0]
}

function childMembers(
  scope: Scope,
  ref: WorkflowRef,
  inputs: unknown[]
): Members & { kind: 'child' } {
  const workflow = workflowName(ref)
  const stored = inputs.map((input, i) =>
    scope.stored(input, `input ${i} of child workflow "${workflow}"`)
  )
  const idOf = (index: number, at: Placement) =>
    fanChildIdOf(at.runId, at.firstSeq, index, at.waveOf(index))
  return {
    kind: 'child',
    command: (index, seq, at) => ({
      kind: 'child',
      seq,
      childId: idOf(index, at),
      workflow,
      input: stored[index],
      group: at.group,
    }),
    end: (index, row, at) => {
      if (row.status !== 'completed') return undefined
      const completion = row.output as CompletionEnvelope
      if (completion.ok) return { ok: true, value: completion.value, row }
      const { error, code, details } = completion
      return { ok: false, failure: failureOf(index, idOf(index, at), error, code, details), row }
    },
    dueAt: () => undefined,
  }
}

function stepMembers(
  scope: Scope,
  primitive: string,
  name: string,
  ref: StepRef<never, unknown>,
  inputs: unknown[],
  { mode: _mode, concurrency: _concurrency, ...perCall }: Options
): Members & { kind: 'step' } {
  scope.checkName(primitive, name)
  const policy = mergePolicy(stepConfigOf(ref), perCall)
  const where = `ctx.${primitive} over step "${name}"`
  checkPolicy(where, policy)
  checkDispatch(where, policy)
  for (const option of ['queue', 'timeoutMs', 'pickupTimeoutMs'] as const) {
    if ((policy as Record<string, unknown>)[option] === undefined) continue
    throw new InvalidArgumentError(
      `${where}: option "${option}"`,
      'is not possible for a fan; give it to single calls of ctx.step'
    )
  }
  const allowed = maxAttempts(policy)
  const stored = inputs.map((input, i) => scope.stored(input, `input ${i} of step "${name}"`))
  return {
    kind: 'step',
    command: (index, seq, at) => ({
      kind: 'call',
      seq,
      name,
      input: stored[index],
      options: policy,
      group: at.group,
    }),
    end: (index, row, at) => {
      if (row.status === 'completed') return { ok: true, value: row.output, row }
      if (row.status !== 'failed' || !isFinalFailure(row, allowed)) return undefined
      const { message = 'failed', code, details } = row.error ?? {}
      const id = stepIdOf(at.runId, row.seq)
      return { ok: false, failure: failureOf(index, id, message, code, details), row }
    },
    dueAt: (row) => (row.status === 'failed' || row.status === 'pending' ? row.wakeAt : undefined),
  }
}

/**
 * One answer for the whole block; a fail-fast fan is decided by the member that failed first. A member
 * that is over stays over, and a reading looks only at the rows that changed since the last one: all
 * readings of a fan together are linear in its size.
 */
class FanReader {
  readonly #members: Members
  readonly #at: Placement
  readonly #size: number
  readonly #how: { failFast: boolean; settled: boolean }
  readonly #ends: (MemberEnd | undefined)[] = []
  /** When open members want their performer: by index, and earliest first with what is out of date. */
  readonly #dueOf = new Map<number, number>()
  readonly #dues = new Heap<{ index: number; at: number }>((a, b) => a.at < b.at)
  #over = 0
  #decided?: MemberEnd & { ok: false }

  constructor(
    members: Members,
    at: Placement,
    size: number,
    how: { failFast: boolean; settled: boolean }
  ) {
    this.#members = members
    this.#at = at
    this.#size = size
    this.#how = how
  }

  read(rows: RowsOfCall, changed: Iterable<number> = this.#started(rows)): Reading {
    for (const index of changed) {
      const row = rows(index, true)
      if (row && !this.#ends[index]) this.#look(index, row)
    }
    if (this.#decided) {
      const { row, failure } = this.#decided
      const error = new GatherError([failure], this.#size)
      return { ...answer(row, row.finishedAt.getTime(), { ok: false, error }), decided: true }
    }
    if (this.#over < this.#size) return { state: 'open', dueAt: this.#earliestDue() }
    return this.#joined(rows)
  }

  /** Members start in order: the first that has no row ends them. */
  *#started(rows: RowsOfCall): Iterable<number> {
    for (let index = 0; index < this.#size && rows(index); index++) yield index
  }

  #look(index: number, row: StepCheckpoint): void {
    const end = this.#members.end(index, row, this.#at)
    const due = end ? undefined : this.#members.dueAt(row)
    if (due === undefined) this.#dueOf.delete(index)
    else if (due !== this.#dueOf.get(index)) {
      this.#dueOf.set(index, due)
      this.#dues.push({ index, at: due })
    }
    if (!end) return
    this.#ends[index] = end
    this.#over += 1
    if (end.ok || !this.#how.failFast) return
    if (!this.#decided || isEarlier(end.row, this.#decided.row)) this.#decided = end
  }

  #earliestDue(): number | undefined {
    for (;;) {
      const top = this.#dues.peek()
      if (!top || this.#dueOf.get(top.index) === top.at) return top?.at
      this.#dues.pop()
    }
  }

  #joined(rows: RowsOfCall): Reading {
    const ends = this.#ends as MemberEnd[]
    // A failure carries the order, if there is one: a retry takes back its row, and the order with it.
    const carrier = Math.max(
      0,
      ends.findIndex((end) => !end.ok)
    )
    let stamped = ends[carrier].row
    let settledAt = 0
    for (let index = ends.length - 1; index >= 0; index--) {
      const row = rows(index) ?? ends[index].row
      if (row.order !== undefined) stamped = row
      settledAt = Math.max(settledAt, row.finishedAt.getTime())
    }
    if (this.#how.settled)
      return answer(stamped, settledAt, { ok: true, value: ends.map(asSettled) })
    const failures = ends.flatMap((end) => (end.ok ? [] : [end.failure]))
    if (failures.length > 0) {
      const error = new GatherError(failures, this.#size)
      return answer(stamped, settledAt, { ok: false, error })
    }
    const value = ends.map((end) => (end.ok ? end.value : undefined))
    return answer(stamped, settledAt, { ok: true, value })
  }
}

function answer(
  row: StepCheckpoint,
  at: number,
  result: { ok: true; value: unknown } | { ok: false; error: unknown }
): Reading & { state: 'answered' } {
  return { state: 'answered', result, orderSeq: row.seq, at }
}

function isEarlier(a: StepCheckpoint, b: StepCheckpoint): boolean {
  const [orderA, orderB] = [a.order ?? Infinity, b.order ?? Infinity]
  if (orderA !== orderB) return orderA < orderB
  const [atA, atB] = [a.finishedAt.getTime(), b.finishedAt.getTime()]
  return atA === atB ? a.seq < b.seq : atA < atB
}

function asSettled(end: MemberEnd): Settled<unknown> {
  if (end.ok) return { status: 'fulfilled', value: end.value }
  const { id, error, code, details } = end.failure
  const settled: Settled<unknown> = { status: 'rejected', id, error }
  if (code !== undefined) settled.code = code
  if (details !== undefined) settled.details = details
  return settled
}

function failureOf(
  index: number,
  id: string,
  error: string,
  code?: string,
  details?: unknown
): GatherItemFailure {
  const failure: GatherItemFailure = { index, id, error }
  if (code !== undefined) failure.code = code
  if (details !== undefined) failure.details = details
  return failure
}

function checkMode(primitive: string, mode: unknown): void {
  if (mode === undefined || mode === 'waitAll' || mode === 'failFast') return
  throw new InvalidArgumentError(
    `ctx.${primitive}: mode`,
    `must be 'waitAll' or 'failFast', got ${String(mode)}`
  )
}

function checkConcurrency(primitive: string, concurrency: unknown): void {
  if (concurrency === undefined || (Number.isInteger(concurrency) && Number(concurrency) > 0))
    return
  throw new InvalidArgumentError(
    `ctx.${primitive}: concurrency`,
    `must be a whole number of at least 1, got ${String(concurrency)}`
  )
}
