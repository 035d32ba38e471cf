/*
 * Every name on a broker, in one place and byte-stable: dispatching and subscribing, in every language,
 * derive the same ones. Unset, empty and 'default' pools and namespaces give the same bare names, so a
 * deployment with one pool never migrates. `P` below is the effective prefix.
 */
import { hostname } from 'node:os'
import { stepIdOf } from '../foundation/ids.ts'

export const DEFAULT_PREFIX = 'durable'
export const DEFAULT_NAMESPACE = 'default'

/** True for a pool or namespace that leaves names bare. */
export const isDefaultPool = (name: string | undefined): boolean =>
  name === undefined || name === '' || name === DEFAULT_NAMESPACE

/** A name as brokers accept it: every ':' becomes '-', nothing else changes. */
export const sanitizeQueueToken = (name: string): string => name.replaceAll(':', '-')

/** `base`, or `base@partition` for a partition that is not the default. */
export const tenantGroup = (base: string, partition?: string): string =>
  isDefaultPool(partition) ? base : `${base}@${partition}`

/** The queue token of a handler name in a partition. */
export const routingToken = (name: string, partition?: string): string =>
  tenantGroup(sanitizeQueueToken(name), partition)

/** The partition that `routingToken(name, …)` put into a token; undefined when there is none. */
export function partitionOf(token: string, name: string): string | undefined {
  const base = `${sanitizeQueueToken(name)}@`
  return token.startsWith(base) && token.length > base.length ? token.slice(base.length) : undefined
}

/**
 * The token that carries a group within a namespace: the pool of the same name is the bare one, since the
 * namespace is told already.
 */
export function tokenWithin(namespace: string | undefined, group: string): string {
  const own = `@${namespace}`
  const isOwn = !isDefaultPool(namespace) && group.endsWith(own) && group !== own
  return isOwn ? group.slice(0, -own.length) : group
}

/** The prefix with a namespace folded in. */
export const effectivePrefix = (prefix: string, namespace?: string): string =>
  isDefaultPool(namespace) ? prefix : `${prefix}-${namespace}`

/** The dedupe key of a dispatched step: `<runId>:<seq>`. */
export const stepId = stepIdOf

/** The id of this process: `ts-<hostname>-<pid>`. */
export const buildInstanceId = (): string => `ts-${hostname()}-${process.pid}`

/** Names of the job kinds on a shared queue. */
export const JOB = {
  task: 'task',
  workflow: 'workflow',
  result: 'result',
  heartbeat: 'heartbeat',
  control: 'control',
  decision: 'decision',
  stepEvent: 'stepEvent',
  startRun: 'startRun',
  runRequest: 'runRequest',
  runReply: 'runReply',
  tenantEvent: 'tenantEvent',
  inbox: 'inbox',
  run: 'run',
} as const

/** Queues of every transport over queues of jobs. */
export interface JobNames {
  tasks(token: string): string
  results: string
  decisions: string
  stepEvents: string
  startRun: string
  runRequest: string
  runs(scope: string): string
}

/** Queues of the `queue` transport. */
export interface QueueNames extends JobNames {
  heartbeats: string
  control: string
  runReplies(instanceId: string): string
  tenantEvents(instanceId: string): string
  inboxRegistrations: string
}

/** Names of the `queue` transport: `P:<queue>`; run queues carry their scope instead of the namespace. */
export function queueNames(prefix: string, namespace?: string): QueueNames {
  const p = effectivePrefix(prefix, namespace)
  return {
    tasks: (token) => `${p}:tasks:${token}`,
    results: `${p}:results`,
    heartbeats: `${p}:heartbeats`,
    control: `${p}:control`,
    decisions: `${p}:decisions`,
    stepEvents: `${p}:step-events`,
    startRun: `${p}:start-run`,
    runRequest: `${p}:run-request`,
    runReplies: (instanceId) => `${p}:run-replies:${instanceId}`,
    tenantEvents: (instanceId) => `${p}:tenant-events:${instanceId}`,
    inboxRegistrations: `${p}:inbox-registrations`,
    runs: (scope) => `${prefix}:runs:${scope}`,
  }
}

/** Queues of the `bullmq` transport, and these channels. */
export interface BullNames extends JobNames {
  heartbeat: string
  runReply: string
  tenantEvents(tenant: string): string
  control: string
}

/** Names of the `bullmq` transport: `P-<queue>`, since BullMQ forbids ':'. */
export function bullNames(prefix: string, namespace?: string): BullNames {
  const p = effectivePrefix(prefix, namespace)
  return {
    tasks: (token) => `${p}-tasks-${token}`,
    results: `${p}-results`,
    decisions: `${p}-decisions`,
    stepEvents: `${p}-step-events`,
    startRun: `${p}-start-run`,
    runRequest: `${p}-run-request`,
    runs: (scope) => `${prefix}-runs-${scope}`,
    heartbeat: `${p}-heartbeat`,
    runReply: `${p}-run-reply`,
    tenantEvents: (tenant) => `${p}-tenant-events-${tenant}`,
    control: controlChannel(p),
  }
}

/** The control channel: the prefix is taken as given, a namespace is never folded in. */
export const controlChannel = (prefix: string): string => `${prefix}-control`

/** Keys under which workers and pods are seen alive. */
export interface KeyNames {
  workerHeartbeat(token: string, instanceId: string): string
  workerDescriptor(token: string, instanceId: string): string
  /** Common start of a token's keys, or of all tokens'. */
  workerHeartbeats(token?: string): string
  workerDescriptors(token?: string): string
  inbox(instanceId: string): string
  tenantSubscriber(tenant: string, instanceId: string): string
  tenantSubscribers(tenant: string): string
}

export function keyNames(prefix: string, namespace?: string): KeyNames {
  const p = effectivePrefix(prefix, namespace)
  const within = (base: string, token?: string) =>
    token === undefined ? `${base}:` : `${base}:${token}:`
  const heartbeats = (token?: string) => within(`${p}-worker-heartbeat`, token)
  const descriptors = (token?: string) => within(`${p}-worker-descriptor`, token)
  const subscribers = (tenant: string) => within(`${p}-tenant-subscriber`, tenant)
  return {
    workerHeartbeat: (token, instanceId) => heartbeats(token) + instanceId,
    workerDescriptor: (token, instanceId) => descriptors(token) + instanceId,
    workerHeartbeats: heartbeats,
    workerDescriptors: descriptors,
    inbox: (instanceId) => `${p}-inbox:${instanceId}`,
    tenantSubscriber: (tenant, instanceId) => subscribers(tenant) + instanceId,
    tenantSubscribers: subscribers,
  }
}

/**
 * Token and instance of a worker key, given the common start of all of them. The token ends at the
 * first ':', which no token contains. Undefined for anything else.
 */
export function parseWorkerKey(
  key: string,
  start: string
): { token: string; instanceId: string } | undefined {
  if (!key.startsWith(start)) return undefined
  const rest = key.slice(start.length)
  const end = rest.indexOf(':')
  if (end <= 0 || end === rest.length - 1) return undefined
  return { token: rest.slice(0, end), instanceId: rest.slice(end + 1) }
}

/** Event names on an emitter: `durable.<what>`, plus `:<namespace>` for one that is not the default. */
export function emitterEvents(namespace?: string): Record<EmitterEvent, string> {
  const suffix = isDefaultPool(namespace) ? '' : `:${namespace}`
  return {
    task: `durable.task${suffix}`,
    result: `durable.result${suffix}`,
    heartbeat: `durable.heartbeat${suffix}`,
    control: `durable.control${suffix}`,
  }
}

export type EmitterEvent = 'task' | 'result' | 'heartbeat' | 'control'
