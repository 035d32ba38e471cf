/*
 * A new run in the place of one that cannot be saved: another input, a clean history. The original stays
 * as it is. Who may start an id twice is decided by the insert, as for every start.
 */
import { InvalidArgumentError } from '../../errors.ts'
import { retryIdOf } from '../../foundation/ids.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { StartOptions } from '../../types/workflow.ts'
import type { Starter } from './starter.ts'

/** Tags that say what a run holds or counts for; a new run takes its own. */
const RESERVED = ['durable:', 'singleton:', 'concurrency:']

/** Starts the run; null when there is no original. */
export async function retryWithInput(
  { store, starter }: { store: Pick<FullStore, 'getRun'>; starter: Pick<Starter, 'start'> },
  retry: { runId: string; input: unknown; newRunId?: string }
): Promise<{ runId: string } | null> {
  const { runId, input, newRunId = retryIdOf(runId) } = retry
  const run = await store.getRun(runId)
  if (!run) return null
  if (newRunId === runId) {
    throw new InvalidArgumentError('retryWithInput: the new run', 'needs an id of its own')
  }
  const options: StartOptions = { namespace: run.namespace }
  const tags = run.tags?.filter((tag) => !RESERVED.some((prefix) => tag.startsWith(prefix)))
  if (tags) options.tags = tags.filter((tag) => tag !== 'version:undeclared')
  if (run.priority !== undefined) options.priority = run.priority
  await starter.start(run.workflow, input, newRunId, options)
  return { runId: newRunId }
}
