/*
 * How the end of a run reads for whoever waits for it.
 */
import type { CompletionEnvelope } from '../types/checkpoint.ts'
import type { WorkflowRun } from '../types/run.ts'

export function completionOf(
  run: Pick<WorkflowRun, 'status' | 'output' | 'error'>
): CompletionEnvelope {
  if (run.status === 'completed') return { ok: true, value: run.output }
  const { message, code, details } = run.error ?? { message: run.status }
  const completion: CompletionEnvelope = { ok: false, error: message }
  if (code !== undefined) completion.code = code
  if (details !== undefined) completion.details = details
  return completion
}
