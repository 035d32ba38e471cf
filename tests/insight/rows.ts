/*
 * Rows of fans for the tests of what reads them.
 */
import type { CompletionEnvelope, StepCheckpoint } from '../../src/types/checkpoint.ts'

export const T0 = Date.UTC(2026, 0, 15, 8, 30)
const at = (ms: number): Date => new Date(T0 + ms)

export function stepRow(seq: number, fields: Partial<StepCheckpoint> = {}): StepCheckpoint {
  return {
    runId: 'r',
    seq,
    name: 'charge',
    kind: 'remote',
    stepId: `r:${seq}`,
    status: 'completed',
    attempts: 1,
    enqueuedAt: at(seq),
    startedAt: at(seq + 100),
    finishedAt: at(seq + 200),
    ...fields,
  }
}

export const failedStep = (seq: number, fields: Partial<StepCheckpoint> = {}): StepCheckpoint =>
  stepRow(seq, { status: 'failed', error: { message: `no ${seq}`, code: 'refused' }, ...fields })

/** The row of a child; without a completion it is still open. */
export const childRow = (
  seq: number,
  childId: string,
  completion?: CompletionEnvelope,
  fields: Partial<StepCheckpoint> = {}
): StepCheckpoint =>
  stepRow(seq, {
    name: `signal:child:${childId}`,
    kind: 'signal',
    status: completion ? 'completed' : 'running',
    ...(completion ? { output: completion } : {}),
    ...fields,
  })

/** A folded wave of children from the fan at `firstSeq`. */
export function foldRow(
  firstSeq: number,
  from: number,
  values: unknown[],
  fields: Partial<StepCheckpoint> = {}
): StepCheckpoint {
  const idPrefix = `r.all.${firstSeq}.`
  const to = from + values.length - 1
  return stepRow(firstSeq + from, {
    name: `signal:child:fold:${idPrefix}:${from}-${to}`,
    kind: 'signal',
    output: { ok: true, idPrefix, from, to, values },
    parallelGroup: `all:${firstSeq}`,
    ...fields,
  })
}
