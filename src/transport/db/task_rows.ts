/*
 * Rows of tasks and results, and the messages they carry. A row of a turn keeps the whole message in
 * `input`; its id is the task id.
 */
import { encodeJson } from '../../foundation/json.ts'
import type { Binding } from '../../sql/dialect.ts'
import type { Row } from '../../sql/session.ts'
import { decode, encode } from '../../wire/codec.ts'
import type { RemoteTask, StepResult, WorkflowTask } from '../../wire/messages.ts'

export const TASK_COLUMNS = [
  'step_id',
  'run_id',
  'seq',
  'name',
  'grp',
  'namespace',
  'kind',
  'input',
  'traceparent',
  'context',
  'transport',
  'attempt',
  'priority',
  'created_at',
] as const

export const RESULT_COLUMNS = [
  'step_id',
  'run_id',
  'seq',
  'status',
  'namespace',
  'output',
  'error',
  'started_at',
  'events',
  'attempt',
  'created_at',
] as const

/** Where and when a row is written. */
export interface RowContext {
  namespace: string
  nowMs: number
}

const jsonOf = (value: unknown, what: string): string | null =>
  value === undefined ? null : (encodeJson(value, what, Infinity) ?? null)

const LARGEST_INT = 2 ** 31 - 1

/** Priorities are whole numbers here. */
const whole = (priority: number | undefined): number =>
  Math.max(-LARGEST_INT, Math.min(LARGEST_INT, Math.round(priority ?? 0)))

/** Throws `UnstorableValueError` for an input without JSON form. */
export function taskValues(task: RemoteTask, { namespace, nowMs }: RowContext): Binding[] {
  return [
    task.stepId,
    task.runId,
    task.seq,
    task.name,
    task.group,
    namespace,
    'step',
    jsonOf(task.input, `the input of step "${task.name}"`),
    task.traceparent ?? null,
    jsonOf(task.context, 'the propagated context'),
    task.transport ?? null,
    task.attempt,
    whole(task.priority),
    nowMs,
  ]
}

/** Throws `UnstorableValueError` for a payload without JSON form. */
export function turnValues(task: WorkflowTask, { namespace, nowMs }: RowContext): Binding[] {
  return [
    task.taskId,
    task.runId,
    0,
    task.workflow,
    task.group,
    namespace,
    'workflow',
    encode('workflow', task),
    task.traceparent ?? null,
    null,
    task.transport ?? null,
    task.attempt,
    whole(task.priority),
    nowMs,
  ]
}

export function resultValues(result: StepResult, { namespace, nowMs }: RowContext): Binding[] {
  return [
    result.stepId,
    result.runId,
    result.seq,
    result.status,
    namespace,
    jsonOf(result.output, 'an output'),
    jsonOf(result.error, 'an error'),
    result.startedAt ?? null,
    jsonOf(result.events, 'step events'),
    result.attempt ?? null,
    nowMs,
  ]
}

/** What a claimed row of tasks asks for. */
export type ClaimedTask = { token: string; stepId: string; reclaims: number } & (
  { kind: 'step'; task: RemoteTask } | { kind: 'workflow'; task: WorkflowTask; createdAt: number }
)

/** Throws `WireFormatError` for a row that somebody else made unreadable. */
export function claimedTask(row: Row, token: string): ClaimedTask {
  const claim = { token, stepId: String(row.step_id), reclaims: Number(row.reclaims) }
  if (row.kind === 'workflow') {
    const createdAt = Number(row.created_at)
    return { ...claim, kind: 'workflow', task: decode('workflow', row.input), createdAt }
  }
  const task = decode('task', {
    runId: row.run_id,
    seq: Number(row.seq),
    name: row.name,
    stepId: row.step_id,
    group: row.grp,
    input: parsed(row.input),
    traceparent: row.traceparent,
    context: parsed(row.context),
    transport: row.transport,
    priority: Number(row.priority) || undefined,
    attempt: Number(row.attempt),
  })
  return { ...claim, kind: 'step', task }
}

export function resultOf(row: Row): StepResult {
  return decode('result', {
    runId: row.run_id,
    seq: Number(row.seq),
    stepId: row.step_id,
    status: row.status,
    output: parsed(row.output),
    error: parsed(row.error),
    startedAt: numberOf(row.started_at),
    events: parsed(row.events),
    attempt: numberOf(row.attempt),
  })
}

const parsed = (text: unknown): unknown =>
  typeof text === 'string' ? (JSON.parse(text) as unknown) : undefined

const numberOf = (value: unknown): number | undefined =>
  value === null || value === undefined ? undefined : Number(value)
