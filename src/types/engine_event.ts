/*
 * What the engine tells its listeners.
 */
import type { StepError } from '../foundation/failure.ts'
import type { CheckpointKind } from './checkpoint.ts'
import type { StepEvent } from './step.ts'

export type EngineEventType =
  | 'run.started'
  | 'run.completed'
  | 'run.failed'
  | 'run.suspended'
  | 'step.started'
  | 'step.completed'
  | 'step.failed'
  | 'step.progress'
  | 'capability.unavailable'
  | 'protocol.incompatible'

/**
 * One lifecycle event. `run.failed` also reports a cancelled, timed-out or dead run (see its error).
 * Durations in ms.
 */
export interface EngineEvent {
  type: EngineEventType
  runId: string
  workflow?: string
  /** On `run.*` only. */
  namespace?: string
  seq?: number
  name?: string
  kind?: CheckpointKind
  output?: unknown
  error?: StepError
  durationMs?: number
  /** From enqueued to started. */
  queueMs?: number
  event?: StepEvent
  diagnostics?: unknown
  at: Date
}

/** Called synchronously for every event; what it throws is contained. */
export type EngineListener = (event: EngineEvent) => void

/** What an interceptor sees of the attempt it wraps. */
export interface StepInvocation {
  runId: string
  workflow: string
  stepName: string
  seq: number
  /** 1-based. */
  attempt: number
}

/** Onion middleware around each real attempt of a local step body; never on replay. */
export type StepInterceptor = (
  invocation: StepInvocation,
  next: () => Promise<unknown>
) => Promise<unknown>
