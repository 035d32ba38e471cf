/*
 * Captured histories: one run and its checkpoints as plain data, to be kept as JSON beside the code and
 * replayed against every later version of it.
 */
import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { decodeJson } from '../foundation/json.ts'
import { DurableError, messageOf } from '../foundation/failure.ts'
import type { StepCheckpoint } from '../types/checkpoint.ts'
import type { WorkflowRun } from '../types/run.ts'
import { readable, type RunSource, runOf } from './assertions.ts'

/** One run and everything recorded of it, checkpoints by position. */
export interface RunHistory {
  run: WorkflowRun
  checkpoints: StepCheckpoint[]
}

/** A text or object that is no captured history; the message names the member that is wrong. */
export class RunHistoryError extends DurableError {
  static override readonly code: string = 'run_history'
}

const FORMAT = 'durable-run-history'
const VERSION = 1
const RUN_DATES = ['createdAt', 'updatedAt', 'claimedAt'] as const
const ROW_DATES = ['enqueuedAt', 'startedAt', 'finishedAt', 'lastHeartbeatAt'] as const
const KINDS = ['local', 'remote', 'sleep', 'signal']
const STATUSES = ['pending', 'running', 'completed', 'failed']

/**
 * The history of a run as it is recorded now; `JSON.stringify` of it is what `parseRunHistory` and
 * `assertReplayable` read. Leases are left out. Rejects with an `Error` when there is no such run.
 */
export async function captureHistory(source: RunSource, runId: string): Promise<RunHistory> {
  const run = { ...(await runOf(source, runId)) }
  delete run.lockedBy
  delete run.lockedUntil
  const rows = await readable(source).listCheckpoints(runId)
  return { run, checkpoints: rows.sort((a, b) => a.seq - b.seq) }
}

/**
 * A history from JSON text or an object parsed from it: members are checked, dates revived, unknown ones
 * ignored. Throws `RunHistoryError`.
 */
export function parseRunHistory(source: string | object): RunHistory {
  const document = typeof source === 'string' ? parsed(source) : source
  if (!isRecord(document)) throw new RunHistoryError('a captured history is a JSON object')
  const { format, version, run, checkpoints } = document
  if (format !== undefined && format !== FORMAT) {
    throw new RunHistoryError(`format: expected "${FORMAT}", found ${JSON.stringify(format)}`)
  }
  if (version !== undefined && !(typeof version === 'number' && version <= VERSION)) {
    throw new RunHistoryError(`version ${JSON.stringify(version)} is newer than ${VERSION}`)
  }
  if (!isRecord(run)) throw new RunHistoryError('run: is missing')
  if (!Array.isArray(checkpoints)) throw new RunHistoryError('checkpoints: must be a list')
  const revivedRun = revived<WorkflowRun>(run, 'run', RUN_DATES, 2)
  for (const key of ['id', 'workflow', 'workflowVersion', 'status'] as const) {
    text(revivedRun[key], `run.${key}`)
  }
  return {
    run: revivedRun,
    checkpoints: checkpoints
      .map((row, index) => checkpoint(row, `checkpoints[${index}]`))
      .sort((a, b) => a.seq - b.seq),
  }
}

/** Where a history comes from, for messages. */
export interface NamedHistory {
  /** The file it was read from; absent for one that was given. */
  file?: string
  history: RunHistory
}

/**
 * The histories of a path: a JSON file, or a folder, whose `*.json` files are read, subfolders included,
 * in order of name. Throws `RunHistoryError` for a path that holds none, and for a file that is none.
 */
export function readHistories(path: string | URL): NamedHistory[] {
  const root = path instanceof URL ? fileURLToPath(path) : path
  const found = statSync(root, { throwIfNoEntry: false })
  if (!found) throw new RunHistoryError(`there is no file or folder ${root}`)
  const files = found.isDirectory()
    ? globSync('**/*.json', { cwd: root })
        .sort()
        .map((file) => join(root, file))
    : [root]
  if (files.length === 0) throw new RunHistoryError(`${root} holds no *.json file`)
  return files.map((file) => {
    try {
      return { file, history: parseRunHistory(readFileSync(file, 'utf8')) }
    } catch (cause) {
      throw new RunHistoryError(`${file}: ${messageOf(cause)}`, { cause })
    }
  })
}

function checkpoint(row: unknown, path: string): StepCheckpoint {
  if (!isRecord(row)) throw new RunHistoryError(`${path}: must be an object`)
  if (!Number.isInteger(row.seq)) throw new RunHistoryError(`${path}.seq: must be an integer`)
  text(row.name, `${path}.name`)
  oneOf(row.kind, KINDS, `${path}.kind`)
  oneOf(row.status, STATUSES, `${path}.status`)
  return revived<StepCheckpoint>(row, path, ROW_DATES, 3)
}

/** A copy whose dates are dates; the first `required` of them must be there. */
function revived<T>(
  record: Record<string, unknown>,
  path: string,
  dates: readonly string[],
  required: number
): T {
  const copy = { ...record }
  for (const [index, key] of dates.entries()) {
    const value = record[key]
    if ((value === undefined || value === null) && index >= required) {
      delete copy[key]
      continue
    }
    const date = value instanceof Date ? value : new Date(value as string | number)
    if (value === undefined || value === null || Number.isNaN(date.getTime())) {
      throw new RunHistoryError(`${path}.${key}: must be a date`)
    }
    copy[key] = date
  }
  return copy as T
}

function parsed(json: string): unknown {
  try {
    return decodeJson(json)
  } catch (cause) {
    throw new RunHistoryError(`not JSON: ${messageOf(cause)}`, { cause })
  }
}

function text(value: unknown, path: string): void {
  if (typeof value !== 'string' || value === '') {
    throw new RunHistoryError(`${path}: must be a string that is not empty`)
  }
}

function oneOf(value: unknown, allowed: string[], path: string): void {
  if (allowed.includes(value as string)) return
  throw new RunHistoryError(
    `${path}: must be one of ${allowed.join(', ')}, found ${JSON.stringify(value)}`
  )
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
