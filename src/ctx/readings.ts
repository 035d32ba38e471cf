/*
 * How rows answer calls: pure readings shared by the primitives.
 */
import { FatalError, SignalTimeoutError } from '../errors.ts'
import { fromStepError } from '../foundation/failure.ts'
import type { Reading, RowsOfCall } from '../replay/open_await.ts'
import type { CompletionEnvelope, StepCheckpoint } from '../types/checkpoint.ts'

export const OPEN: Reading = { state: 'open' }

export function answeredWith(row: StepCheckpoint, value: unknown): Reading {
  return {
    state: 'answered',
    result: { ok: true, value },
    orderSeq: row.seq,
    at: row.finishedAt.getTime(),
  }
}

export function failedWith(row: StepCheckpoint, error: unknown): Reading {
  return {
    state: 'answered',
    result: { ok: false, error },
    orderSeq: row.seq,
    at: row.finishedAt.getTime(),
  }
}

/** A failure whose attempts an operator's retry took back. */
export const wasReset = (row: StepCheckpoint): boolean =>
  row.status === 'failed' && row.attempts === 0

/** Work done in this process: settled rows answer, a recorded failure is rethrown. */
export function readLocal(rows: RowsOfCall): Reading {
  const row = rows(0)
  if (row?.status === 'completed') return answeredWith(row, row.output)
  if (row?.status === 'failed' && !wasReset(row)) {
    return failedWith(row, fromStepError(row.error ?? { message: 'failed' }))
  }
  return OPEN
}

/** A deadline: the recorded one, whatever the code now says. */
export function readTimer(rows: RowsOfCall): Reading {
  const row = rows(0)
  if (!row) return OPEN
  const at = row.wakeAt ?? row.finishedAt.getTime()
  return {
    state: 'answered',
    result: { ok: true, value: undefined },
    orderSeq: row.seq,
    at,
    notBefore: at,
  }
}

/** A task: its hand-over, then the answer somebody reports. */
export function readTask(rows: RowsOfCall, name: string): Reading {
  const handedOver = readLocal(rows)
  const row = rows(1)
  if (handedOver.state === 'open' || !handedOver.result.ok || row?.status !== 'completed') {
    return handedOver.state === 'answered' && !handedOver.result.ok ? handedOver : OPEN
  }
  const completion = row.output as CompletionEnvelope
  if (completion.ok) return answeredWith(row, completion.value)
  const { error, code, details } = completion
  return failedWith(row, new FatalError(`task "${name}" failed: ${error}`, code, details))
}

/** A wait for a payload; `deadline` is absent for an unbounded one. */
export function readSignal(
  deadline: StepCheckpoint | undefined,
  row: StepCheckpoint | undefined,
  wait: { token: string; timeoutMs?: number }
): Reading {
  if (row?.status === 'completed') return answeredWith(row, row.output)
  if (row?.status === 'failed') {
    return failedWith(row, new SignalTimeoutError(wait.token, wait.timeoutMs ?? 0))
  }
  return deadline?.wakeAt === undefined ? OPEN : { state: 'open', dueAt: deadline.wakeAt }
}
