/*
 * How a workflow collects the events that start it.
 */
import { checkOptions } from '../authoring/options.ts'
import { InvalidArgumentError } from '../errors.ts'
import type { RegisterOptions } from '../types/workflow.ts'

export type EventBatch = NonNullable<RegisterOptions['eventBatch']>

const KEYS = new Set(['mode', 'windowMs', 'maxSize'])

/** Throws `InvalidArgumentError` for what cannot be meant. */
export function checkEventBatch(workflow: string, batch: EventBatch | undefined): void {
  if (batch === undefined) return
  const where = `register: eventBatch of workflow "${workflow}"`
  checkOptions(where, batch, KEYS)
  const { mode, windowMs, maxSize } = batch
  if (!['debounce', 'batch'].includes(mode)) {
    throw new InvalidArgumentError(`${where}: mode`, 'must be "debounce" or "batch"')
  }
  if (!Number.isFinite(windowMs) || windowMs <= 0) {
    throw new InvalidArgumentError(`${where}: windowMs`, 'must be more than 0 milliseconds')
  }
  if (maxSize !== undefined && !(Number.isInteger(maxSize) && maxSize > 0)) {
    throw new InvalidArgumentError(`${where}: maxSize`, 'must be a whole number of at least 1')
  }
}
