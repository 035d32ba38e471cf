/*
 * What a flow-control queue may be, and who may decide on its slots.
 */
import { InvalidArgumentError } from '../errors.ts'
import { keyProblem } from '../foundation/keys.ts'
import type { AdmissionBackend, QueueConfig } from './port.ts'

const OPTIONS: Record<keyof QueueConfig, true> = {
  name: true,
  concurrency: true,
  rateLimit: true,
  retryMs: true,
  fairness: true,
  order: true,
}

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
  const unknown = Object.keys(config).find((option) => !Object.hasOwn(OPTIONS, option))
  if (unknown !== undefined) {
    refuse(unknown, `is no option of a queue; it has ${Object.keys(OPTIONS).join(', ')}`)
  }
  if (concurrency !== undefined) whole('concurrency', concurrency)
  if (retryMs !== undefined) whole('retryMs', retryMs)
  if (rateLimit !== undefined) {
    whole('rateLimit.limit', rateLimit?.limit)
    whole('rateLimit.periodMs', rateLimit?.periodMs)
    const other = Object.keys(rateLimit).find((key) => key !== 'limit' && key !== 'periodMs')
    if (other !== undefined) refuse(`rateLimit.${other}`, 'is unknown: it has limit and periodMs')
  }
  if (fairness !== undefined && fairness !== 'key') refuse('fairness', "must be 'key'")
  if (order !== undefined && order !== 'fifo' && order !== 'lifo') {
    refuse('order', "must be 'fifo' or 'lifo'")
  }
}

const MEMBERS = [
  'registerQueue',
  'handles',
  'tryAdmit',
  'release',
  'onFreed',
] as const satisfies (keyof AdmissionBackend)[]

/** Why this is no admission backend. */
export function backendProblem(given: unknown): string | undefined {
  if (typeof given !== 'object' || given === null) return 'must be an admission backend'
  const missing = MEMBERS.filter(
    (member) => typeof (given as Partial<AdmissionBackend>)[member] !== 'function'
  )
  return missing.length === 0
    ? undefined
    : `must be an admission backend; this one lacks ${missing.join(', ')}`
}
