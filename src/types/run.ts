/*
 * Runs: one execution of a workflow, as stores keep it.
 */
import type { SeqRange } from '../foundation/control_flow.ts'
import type { StepError } from '../foundation/failure.ts'

export type RunStatus =
  'pending' | 'running' | 'suspended' | 'blocked' | 'completed' | 'failed' | 'cancelled' | 'dead'

export type TerminalRunStatus = 'completed' | 'failed' | 'cancelled' | 'dead'

export const TERMINAL_RUN_STATUSES: readonly TerminalRunStatus[] = [
  'completed',
  'failed',
  'cancelled',
  'dead',
]

/** Statuses from which a run still moves by itself. */
export const LIVE_RUN_STATUSES: readonly RunStatus[] = [
  'pending',
  'running',
  'suspended',
  'blocked',
]

export const isTerminalStatus = (status: RunStatus): status is TerminalRunStatus =>
  (TERMINAL_RUN_STATUSES as readonly RunStatus[]).includes(status)

/** Flat, queryable data of a run. */
export type SearchAttributes = Record<string, string | number | boolean>

/** A run. `…At` numbers are epoch ms of the engine's clock. */
export interface WorkflowRun {
  /** Chosen by the caller or derived; makes `start` idempotent. */
  id: string
  workflow: string
  /** The version the run began on; every replay uses it. */
  workflowVersion: string
  status: RunStatus
  /** Worker-pool partition; absent reads back as `default`. */
  namespace?: string
  /** Package that declared the workflow; absent when unknown. */
  origin?: string
  /** As sent, never the parsed form. */
  input: unknown
  /** Only of `completed` runs. */
  output?: unknown
  /** Of `failed`, `cancelled`, `dead`; the reason of a `blocked` one. */
  error?: StepError
  /** When a `suspended` or `blocked` run is due. */
  wakeAt?: number
  /** A wake came that could not take the lease: due whatever `wakeAt` says. */
  wakeRequestedAt?: number
  /** The remote turn whose decision the run waits for. */
  awaitingDecisionTaskId?: string
  /** The fan wave a parked turn waits for; results outside it do not wake. */
  waitSeqs?: SeqRange
  lockedBy?: string
  lockedUntil?: number
  /** Durable cancel intent; on a `cancelled` run: children not told yet. */
  cancelRequestedAt?: number
  /** The cancel asked for saga undos; its children are cancelled alike. */
  cancelCompensates?: boolean
  /** Who asked for the cancel. */
  cancelRequestedBy?: string
  /** When the execution timeout ends the run. */
  deadlineAt?: number
  /** Turns claimed so far; absent means that the body never began. */
  turns?: number
  /** When the last turn was claimed. */
  claimedAt?: Date
  /** Some parent waits for this run. */
  awaited?: boolean
  /** Crash pickups since the last progress. */
  recoveryAttempts?: number
  tags?: string[]
  searchAttributes?: SearchAttributes
  /** Dispatch priority of a remote run; higher first. */
  priority?: number
  createdAt: Date
  updatedAt: Date
}

/** What verbs answer about a run. */
export interface RunResult<TOutput = unknown> {
  runId: string
  status: RunStatus
  output?: TOutput
  error?: StepError
}

/** What a suspended run waits for, for display. */
export interface RunWaiting {
  on: 'signal' | 'webhook' | 'child' | 'breakpoint'
  name: string
}
