/*
 * Checks of config/durable.ts at boot. Types do not protect a JavaScript config or a cast: whatever cannot
 * work is refused here, by one sentence that names the key, before anything is opened.
 */
import { RuntimeException } from '@adonisjs/core/exceptions'
import { workflowName } from '../authoring/workflow_ref.ts'
import { controlPlaneProblem, retentionRules } from '../engine/deps.ts'
import { keyProblem } from '../foundation/keys.ts'
import { messageOf } from '../foundation/failure.ts'
import { parseDuration } from '../foundation/duration.ts'
import type { QueueConfig } from '../flow/port.ts'
import { backendProblem, checkQueue } from '../flow/queue_config.ts'
import { checkSchedule } from '../schedules/scheduler.ts'
import type { RetentionConfig } from '../types/housekeeping.ts'
import type { WorkflowRef } from '../types/workflow.ts'
import type { DurableConfig } from './define_config.ts'

type Check = (value: unknown, key: string, config: DurableConfig) => void

const boolean = must((value) => typeof value === 'boolean', 'true or false')
const fn = must((value) => typeof value === 'function', 'a function')
const name: Check = (value, key) => {
  const problem = keyProblem(value)
  if (problem) fail(key, problem)
}

/** Every key of the config. Adding one to `DurableConfig` does not compile until it is listed. */
const CHECKS: { [Key in keyof Required<DurableConfig>]: Check } = {
  role: checkRole,
  transport: selects('transports'),
  transports: factories,
  transportPool: checkPool,
  store: selects('stores'),
  stores: factories,
  autoSchema: boolean,
  traceparent: fn,
  trackStepStart: boolean,
  leaseMs: milliseconds(1),
  instanceId: name,
  // '' means absent.
  namespace: (value, key, config) => value === '' || name(value, key, config),
  scopeReads: boolean,
  maxRecoveryAttempts: count(0),
  deadLetterWorkflow: workflow,
  compensationRetries: count(1),
  compensationTimeoutMs: milliseconds(0),
  runDispatcher: checkDispatcher,
  drive: boolean,
  drainTimeoutMs: milliseconds(0),
  consumers: oneOf('auto', 'always', 'never'),
  worker: checkWorker,
  remoteRedispatchMs: milliseconds(1),
  remoteRedispatchMax: count(1),
  timerBatchSize: count(1),
  // A negative or non-finite one falls back to the default.
  reconcileMs: must((value) => typeof value === 'number', 'a number of milliseconds'),
  workflowsPath: checkPath,
  stepsPath: checkPath,
  continuations: checkContinuations,
  maxPayloadBytes: count(1),
  queues: checkQueues,
  admission: checkAdmission,
  controlPlane: checkControlPlane,
  schedules: checkSchedules,
  persistedSchedules: boolean,
  webhookUrl: fn,
  eventBufferTtl: duration,
  retention: checkRetention,
  stalledAfter: duration,
}

const WORKER_CHECKS: Record<string, Check> = {
  embedded: boolean,
  intervalMs: milliseconds(1),
  drainTimeoutMs: milliseconds(0),
}

const CONTINUATION_CHECKS: Record<string, Check> = { max: count(0), idleMs: duration }

/** Options of the 0.51 API that this release does not serve yet. */
const NOT_YET = new Set([
  'remoteAdvanceSilenceMs',
  'blockedPollMs',
  'verifyTenant',
  'partition',
  'tenant',
  'capabilities',
  'requestTimeoutMs',
])

/** The config, when it can be used. Throws `RuntimeException` naming the key that cannot. */
export function checkConfig(given: unknown): DurableConfig {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new RuntimeException(
      'config/durable.ts must export an object: export default defineConfig({ … })'
    )
  }
  const config = given as DurableConfig
  // The role first: the keys of another one would be refused by name, for the wrong reason.
  if (config.role !== undefined) CHECKS.role(config.role, 'config.role', config)
  checkKeys(config, CHECKS, 'config', config)
  if (config.drive === false && config.worker?.embedded) {
    fail('worker.embedded', 'runs the loop in this process, and config.drive is false: drop one')
  }
  return config
}

function checkKeys(
  given: object,
  checks: Partial<Record<string, Check>>,
  path: string,
  config: DurableConfig
): void {
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined) continue
    const check = Object.hasOwn(checks, key) ? checks[key] : undefined
    if (check) check(value, `${path}.${key}`, config)
    else if (path === 'config' && NOT_YET.has(key)) {
      fail(`config.${key}`, 'is not supported by this release: remove it')
    } else {
      fail(`${path}.${key}`, `is no option of config/durable.ts: check its spelling, or remove it`)
    }
  }
}

function fail(key: string, problem: string): never {
  throw new RuntimeException(`${key.startsWith('config.') ? key : `config.${key}`} ${problem}`)
}

function checkRole(value: unknown, key: string): void {
  if (value === 'standalone') return
  if (value === 'control-plane' || value === 'tenant') {
    fail(key, `"${value}" is not supported by this release: only "standalone" is`)
  }
  fail(key, `must be "standalone", got ${show(value)}`)
}

/** The value is a key of `config[list]`. */
function selects(list: 'stores' | 'transports'): Check {
  return (value, key, config) => {
    if (typeof value !== 'string') fail(key, `must be a key of config.${list}, got ${show(value)}`)
    const known = config[list] ?? {}
    if (Object.hasOwn(known, value)) return
    fail(key, `is "${value}", but config.${list}.${value} is not defined`)
  }
}

function checkPool(value: unknown, key: string, config: DurableConfig): void {
  if (!Array.isArray(value)) fail(key, `must be a list of keys of config.transports`)
  if (value.length > 0 && config.transport === undefined) {
    fail(key, 'needs config.transport, the transport that is tried first')
  }
  value.forEach((one, index) => selects('transports')(one, `${key}[${index}]`, config))
}

function factories(value: unknown, key: string): void {
  if (!isObject(value)) fail(key, 'must be an object of factories by name')
  for (const [one, factory] of Object.entries(value)) {
    if (typeof factory === 'function' || isObject(factory)) continue
    fail(`${key}.${one}`, `must be a factory, such as those of the package, got ${show(factory)}`)
  }
}

function workflow(value: unknown, key: string): void {
  try {
    const problem = keyProblem(workflowName(value as WorkflowRef))
    if (problem) fail(key, problem)
  } catch (error) {
    if (error instanceof RuntimeException) throw error
    fail(key, `must be a workflow class or a name: ${messageOf(error)}`)
  }
}

function checkDispatcher(value: unknown, key: string): void {
  if (isObject(value) && typeof value.dispatch === 'function') return
  fail(key, 'must be an object with a dispatch(runId) method')
}

function checkWorker(value: unknown, key: string, config: DurableConfig): void {
  if (!isObject(value)) fail(key, 'must be an object { embedded, intervalMs, drainTimeoutMs }')
  checkKeys(value, WORKER_CHECKS, key, config)
}

function checkContinuations(value: unknown, key: string, config: DurableConfig): void {
  if (value === false) return
  if (!isObject(value)) fail(key, 'must be false or an object { max, idleMs }')
  checkKeys(value, CONTINUATION_CHECKS, key, config)
}

function checkSchedules(value: unknown, key: string): void {
  if (!Array.isArray(value)) fail(key, `must be a list of schedules, got ${show(value)}`)
  const keys = new Set<string>()
  value.forEach((schedule: { key?: string }, index) => {
    try {
      checkSchedule(schedule?.key, schedule)
    } catch (error) {
      fail(`${key}[${index}]`, `cannot be used: ${messageOf(error)}`)
    }
    if (keys.has(schedule.key!))
      fail(`${key}[${index}]`, `has the key of another: "${schedule.key}"`)
    keys.add(schedule.key!)
  })
}

function checkRetention(value: unknown, key: string): void {
  try {
    retentionRules(value as RetentionConfig, key)
  } catch (error) {
    throw new RuntimeException(messageOf(error))
  }
}

function checkQueues(value: unknown, key: string): void {
  if (!Array.isArray(value)) fail(key, `must be a list of queues, got ${show(value)}`)
  const names = new Set<string>()
  value.forEach((queue: QueueConfig, index) => {
    try {
      checkQueue(`${key}[${index}]`, queue)
    } catch (error) {
      throw new RuntimeException(messageOf(error))
    }
    if (names.has(queue.name)) fail(`${key}[${index}]`, `has the name of another: "${queue.name}"`)
    names.add(queue.name)
  })
}

function checkAdmission(value: unknown, key: string): void {
  const problem = typeof value === 'function' ? undefined : backendProblem(value)
  if (problem) fail(key, `${problem}, or a factory of one`)
}

function checkControlPlane(value: unknown, key: string): void {
  const problem = typeof value === 'function' ? undefined : controlPlaneProblem(value)
  if (problem) fail(key, `${problem}, or a factory of one`)
}

function checkPath(value: unknown, key: string): void {
  const paths: unknown[] = Array.isArray(value) ? value : value === false ? [] : [value]
  const wrong = paths.find((path) => typeof path !== 'string' || path === '')
  if (wrong === undefined && paths.every((path) => path !== undefined)) return
  fail(key, `must be a directory, a list of directories or false, got ${show(wrong)}`)
}

function duration(value: unknown, key: string): void {
  try {
    parseDuration(value as string | number)
  } catch (error) {
    fail(key, `cannot be used: ${messageOf(error)}`)
  }
}

function milliseconds(least: number): Check {
  return numeric(least, 'a number of milliseconds')
}

function count(least: number): Check {
  return numeric(least, 'a number')
}

function numeric(least: number, what: string): Check {
  const fits = (value: unknown) => typeof value === 'number' && value >= least
  return must(fits, `${what} of at least ${least}`)
}

function oneOf(...allowed: string[]): Check {
  return must(
    (value) => allowed.includes(value as string),
    `one of ${allowed.map(show).join(', ')}`
  )
}

function must(fits: (value: unknown) => boolean, what: string): Check {
  return (value, key) => {
    if (!fits(value)) fail(key, `must be ${what}, got ${show(value)}`)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
