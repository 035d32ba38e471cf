/*
 * Control flow: the two signals that unwind a workflow body without being failures. They are recognised
 * by a stamp under a registry symbol, never by `instanceof`, so a second copy of this package or a
 * subclass is recognised too.
 */

import { read } from './failure.ts'

/** Stamped on every control-flow signal. Shared by all copies of the package in a process. */
export const CONTROL_FLOW_SIGNAL: unique symbol = Symbol.for('@agora/durable:control-flow') as never

/** An inclusive range of positions that a parked turn waits for. */
export interface SeqRange {
  from: number
  to: number
}

/**
 * Unwinds a body that has to wait. The engine catches it and persists the suspension; a body that
 * catches it must rethrow it untouched. `wakeAt` (epoch ms) is the earliest deadline among the waits,
 * `waitSeqs` the awaited range when the turn waits on exactly one fan wave.
 */
export class WorkflowSuspended extends Error {
  readonly [CONTROL_FLOW_SIGNAL] = true

  constructor(
    readonly wakeAt?: number,
    readonly waitSeqs?: SeqRange
  ) {
    super('workflow suspended')
    this.name = 'WorkflowSuspended'
  }
}

/** Unwinds a body that called `ctx.continueAsNew(input)`. */
export class ContinueAsNew extends Error {
  readonly [CONTROL_FLOW_SIGNAL] = true

  constructor(readonly input: unknown) {
    super('workflow continues as new')
    this.name = 'ContinueAsNew'
  }
}

/**
 * True for a suspension or a continue-as-new, whichever copy of the package threw it. Not true for a
 * cancellation or any failure: those are outcomes a `catch` may handle.
 */
export function isWorkflowControlFlowSignal(error: unknown): boolean {
  return typeof error === 'object' && error !== null && read(error, CONTROL_FLOW_SIGNAL) === true
}

/** True for a continue-as-new signal of any copy of the package. */
export function isContinueAsNew(error: unknown): error is ContinueAsNew {
  return isWorkflowControlFlowSignal(error) && (error as Error).name === 'ContinueAsNew'
}
