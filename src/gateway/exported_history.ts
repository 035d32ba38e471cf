/*
 * Runs as files: one JSON document a run, with everything recorded of it, as the testing kit replays it.
 */
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { WorkflowRun } from '../types/run.ts'

/** The document of one run. Dates are ISO strings once it is text. */
export interface ExportedHistory {
  format: 'durable-run-history'
  version: 1
  exportedAt: string
  package: { name: string; version: string }
  run: Record<string, unknown>
  checkpoints: Record<string, unknown>[]
  children?: ExportedHistory[]
}

export interface ExportOptions {
  /** Epoch ms. */
  nowMs: number
  packageVersion: string
  /** Replace what payloads hold by stand-ins of the same types; shapes and keys stay. */
  redact?: boolean
}

/** What is of one process or one moment, and nothing to a replay. */
const OF_THE_RUN = ['lockedBy', 'lockedUntil', 'claimedAt', 'wakeRequestedAt']
const OF_A_ROW = ['lastHeartbeatAt', 'heartbeatProgress']
const RUN_PAYLOADS = ['input', 'output', 'searchAttributes']
/** Rows whose output the engine wrote, not the application. */
const ENGINE_ROWS = ['patch:', 'spawn:']
const INTERNAL_TAG = 'durable:'

export function exportedHistory(
  run: WorkflowRun,
  checkpoints: readonly StepCheckpoint[],
  options: ExportOptions
): ExportedHistory {
  const { nowMs, packageVersion, redact = false } = options
  const rows = [...checkpoints].sort((a, b) => a.seq - b.seq)
  const tags = run.tags?.filter((tag) => !tag.startsWith(INTERNAL_TAG))
  return {
    format: 'durable-run-history',
    version: 1,
    exportedAt: new Date(nowMs).toISOString(),
    package: { name: '@adonis-agora/durable', version: packageVersion },
    run: shown({ ...run, tags }, OF_THE_RUN, redact ? RUN_PAYLOADS : []),
    checkpoints: rows.map((row) =>
      shown(redact ? withoutPayloads(row) : row, OF_A_ROW, redact ? ['input', 'events'] : [])
    ),
  }
}

/** In one order of keys, so that two exports of one run differ in what differs. */
function shown(record: object, dropped: string[], redacted: string[]): Record<string, unknown> {
  const entries = Object.entries(record)
    .filter(([key, value]) => value !== undefined && !dropped.includes(key))
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, value]): [string, unknown] => {
      if (redacted.includes(key)) return [key, redactedValue(value)]
      return [key, key === 'error' && redacted.length > 0 ? redactedError(value) : value]
    })
  return Object.fromEntries(entries)
}

/** An envelope stays one: it says how a child or a task ended. */
function withoutPayloads(row: StepCheckpoint): StepCheckpoint {
  const { output } = row
  if (output === undefined || ENGINE_ROWS.some((prefix) => row.name.startsWith(prefix))) return row
  const isEnvelope = typeof (output as { ok?: unknown } | null)?.ok === 'boolean'
  if (row.kind !== 'signal' || !isEnvelope) return { ...row, output: redactedValue(output) }
  const { value, values, error, details, ...envelope } = output as Record<string, unknown>
  const payloads = Object.entries({ value, values, error, details })
  const redacted = payloads.filter(([, one]) => one !== undefined)
  return {
    ...row,
    output: {
      ...envelope,
      ...Object.fromEntries(redacted.map(([key, one]) => [key, redactedValue(one)])),
    },
  }
}

/** The same shape: texts become `…`, numbers 0, booleans false; keys, lists and null stay. */
export function redactedValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redactedValue)
  if (value instanceof Date) return new Date(0)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, redactedValue(inner)])
    )
  }
  if (typeof value === 'string') return '…'
  if (typeof value === 'number') return 0
  return typeof value === 'boolean' ? false : value
}

/** What tells the failure apart stays: its code, its step and whether it may be tried again. */
function redactedError(value: unknown): unknown {
  const { details, ...rest } = value as Record<string, unknown>
  delete rest.stack
  return {
    ...rest,
    message: '…',
    ...(details === undefined ? {} : { details: redactedValue(details) }),
  }
}

/** One document, indented, with a line end; or one line of several. */
export function historyText(history: ExportedHistory, compact = false): string {
  return `${JSON.stringify(history, undefined, compact ? undefined : 2)}\n`
}
