/*
 * Checkpoints: one recorded fact at one position of a run's history; and the rows that pair payloads
 * with the positions that wait for them.
 */
import type { StepError } from '../foundation/failure.ts'
import type { StepEvent } from './step.ts'

export type CheckpointKind = 'local' | 'remote' | 'sleep' | 'signal'
export type CheckpointStatus = 'pending' | 'running' | 'completed' | 'failed'

/** One position of one run. Key: `(runId, seq)`. */
export interface StepCheckpoint {
  runId: string
  /** 0 and up for the body; negative for saga undos, `-1` first. */
  seq: number
  /** With `kind`, the determinism anchor. At most 512 characters. */
  name: string
  kind: CheckpointKind
  /** `<runId>:<seq>`; the dedupe key on the wire. */
  stepId: string
  status: CheckpointStatus
  /** Only of dispatched steps. */
  input?: unknown
  output?: unknown
  error?: StepError
  /** Logger lines of the last attempt; absent when none. */
  events?: StepEvent[]
  /** 1-based. */
  attempts: number
  /** Attempts the step's policy allows, for display. */
  maxAttempts?: number
  /** Liveness window in ms, for display. */
  timeoutMs?: number
  /** Routing token of a dispatched step. */
  workerGroup?: string
  /** Sleep deadline, retry deadline of a failed row, redispatch deadline of a pending one (epoch ms). */
  wakeAt?: number
  /** Fan tag: `all:<firstSeq>` and its variants. */
  parallelGroup?: string
  /** Place in the order in which the body saw results; absent when that order was forced. */
  order?: number
  enqueuedAt: Date
  startedAt: Date
  finishedAt: Date
  lastHeartbeatAt?: Date
  heartbeatProgress?: unknown
}

export const isSettledStatus = (status: CheckpointStatus): status is 'completed' | 'failed' =>
  status === 'completed' || status === 'failed'

/** A position of a run waiting for a payload. Key: `token`. */
export interface SignalWaiter {
  token: string
  runId: string
  seq: number
  parallelGroup?: string
  /** When it registered. */
  createdAt?: Date
}

/** An event nobody waited for when it was published. `publishedAt` is epoch ms. */
export interface BufferedEvent {
  id: string
  payload: unknown
  publishedAt: number
}

/** Payload of child and task tokens. */
export type CompletionEnvelope =
  { ok: true; value: unknown } | { ok: false; error: string; code?: string; details?: unknown }
