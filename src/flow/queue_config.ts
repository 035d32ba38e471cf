/*
 * What a flow-control queue may be.
 */
import { InvalidArgumentError } from '../errors.ts'
import { keyProblem } from '../foundation/keys.ts'
import type { QueueConfig } from './port.ts'

/** Throws `InvalidArgumentError`: `where` is the verb or config key, the rest names the queue. */
export function checkQueue(where: string, config: QueueConfig): void {
  const problem = keyProblem(config?.name)
  if (problem) throw new InvalidArgumentError(`${where}: the queue name`, problem)
  const { name, concurrency, rateLimit, retryMs, fairness, order } = config
  const refuse = (field: string, why: string): never => {
    throw new InvalidArgumentError(`${where}: ${field} of queue "${name}"`, why)
  }
  const whole = (field: string, value: unknown) => {
    if (Number.isSafeInteger(value) && Number(value) >= 1) return
    refuse(field, 'must be a whole number of at least 1')
  }
  if (concurrency !== undefined) whole('concurrency', concurrency)
  if (retryMs !== undefined) whole('retryMs', retryMs)
  if (rateLimit !== undefined) {
    whole('rateLimit.limit', rateLimit?.limit)
    whole('rateLimit.periodMs', rateLimit?.periodMs)
  }
  if (fairness !== undefined && fairness !== 'key') refuse('fairness', "must be 'key'")
  if (order !== undefined && order !== 'fifo' && order !== 'lifo') {
    refuse('order', "must be 'fifo' or 'lifo'")
  }
}
