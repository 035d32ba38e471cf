/*
 * Fans: many children, or one step over many inputs, awaited together.
 */
import type { StepDispatchOpts } from './step.ts'

/** Options of `ctx.all` over children. */
export interface AllOptions {
  /** `waitAll` (default) waits for every member; `failFast` throws at the first failure. */
  mode?: 'waitAll' | 'failFast'
  /**
   * Children at once, in waves of `floor(concurrency / 2)`, two at a time. Part of the fan's identity: do
   * not change it under a running run.
   */
  concurrency?: number
}

/** Options of `ctx.all` over a step: its policy for every member, in strict waves of `concurrency`. */
export type AllStepsOptions = Omit<StepDispatchOpts, 'queue' | 'timeoutMs' | 'pickupTimeoutMs'> & {
  mode?: 'waitAll' | 'failFast'
  concurrency?: number
}

export type AllSettledOptions = Omit<AllOptions, 'mode'>
export type AllStepsSettledOptions = Omit<AllStepsOptions, 'mode'>

/** One member of `ctx.allSettled`, in input order; `id` is its child run id or step id. */
export type Settled<T> =
  | { status: 'fulfilled'; value: T }
  | { status: 'rejected'; id: string; error: string; code?: string; details?: unknown }
