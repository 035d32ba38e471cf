/*
 * One object for all transports of an engine: tasks fail over in order, answers are taken from every
 * member (they come back where the task went), and what the members know of the fleet is merged. Asks
 * once, here, what a member can do. Owns the members' lifecycle, not their connections.
 */
import { InvalidArgumentError, TransportUnavailableError } from '../errors.ts'
import type { StepHandler } from '../types/step.ts'
import type {
  GroupHealth,
  Heartbeat,
  RemoteTask,
  StartRunMessage,
  StepResult,
  WorkerDescriptor,
  WorkerHeartbeat,
  WorkflowDecision,
  WorkflowStepEvent,
  WorkflowTask,
} from '../wire/messages.ts'
import type { RunQueue, Transport } from './ports.ts'

/** A transport under the name that tasks carry. */
export interface PoolMember {
  id: string
  transport: Transport
}

/** Who takes what comes back from workers. */
export interface TransportHandlers {
  onResult: (result: StepResult) => Promise<void>
  onHeartbeat: (beat: Heartbeat) => Promise<void>
  onStepEvent?: (event: WorkflowStepEvent) => Promise<void>
  onDecision?: (decision: WorkflowDecision) => Promise<void>
  onUnserved?: (task: RemoteTask) => void
}

export class TransportPool {
  readonly #members: readonly PoolMember[]

  /** Ordered; the first member is the primary one. */
  constructor(members: readonly PoolMember[]) {
    if (members.length === 0) throw new InvalidArgumentError('transports', 'must not be empty')
    const ids = new Set(members.map((member) => member.id))
    if (ids.size < members.length)
      throw new InvalidArgumentError('transports', 'must have unique ids')
    this.#members = [...members]
  }

  get primary(): Transport {
    return this.#members[0].transport
  }

  get ids(): string[] {
    return this.#members.map((member) => member.id)
  }

  /** The member of this id; without an id, the primary one. Throws for an unknown id. */
  member(id?: string): Transport {
    return id === undefined ? this.primary : this.#named(id).transport
  }

  /**
   * Sends a task to `preferId`, else to the primary member; when that one throws, to the others in
   * order. The task carries the id of the member that took it, which is also the answer. When all fail,
   * the last error is thrown; an unknown `preferId` throws before anything is tried.
   */
  dispatch(task: RemoteTask, preferId?: string): Promise<string> {
    return this.#failOver(this.#members, preferId, (transport, id) =>
      transport.dispatch({ ...task, transport: id })
    )
  }

  /** Like `dispatch`, over the members that carry turns. */
  dispatchWorkflowTask(task: WorkflowTask, preferId?: string): Promise<string> {
    const able = this.#members.filter(({ transport }) => transport.dispatchWorkflowTask)
    return this.#failOver(able, preferId, (transport, id) =>
      transport.dispatchWorkflowTask!({ ...task, transport: id })
    )
  }

  /** Registers on every member; a hook that a member lacks is skipped. */
  bind(handlers: TransportHandlers): void {
    for (const { transport } of this.#members) {
      transport.onResult(handlers.onResult)
      transport.onHeartbeat(handlers.onHeartbeat)
      if (handlers.onStepEvent) transport.onStepEvent?.(handlers.onStepEvent)
      if (handlers.onDecision) transport.onDecision?.(handlers.onDecision)
      if (handlers.onUnserved) transport.onUnserved?.(handlers.onUnserved)
    }
  }

  /** Some member can run step bodies in this process. */
  get servesSteps(): boolean {
    return this.#members.some(({ transport }) => transport.handle)
  }

  /** Serves a step body on every member that can: a task may arrive on any of them. */
  handle(name: string, fn: StepHandler, partition?: string): void {
    for (const { transport } of this.#members) transport.handle?.(name, fn, partition)
  }

  useNamespace(namespace: string): void {
    for (const { transport } of this.#members) transport.useNamespace?.(namespace)
  }

  deferConsumers(): void {
    for (const { transport } of this.#members) transport.deferConsumers?.()
  }

  startConsumers(): void {
    for (const { transport } of this.#members) transport.startConsumers?.()
  }

  onStartRun(handler: (message: StartRunMessage) => Promise<void>): void {
    for (const { transport } of this.#members) transport.onStartRun?.(handler)
  }

  /** The first member that carries run hints. */
  get runQueue(): RunQueue | undefined {
    for (const { transport } of this.#members) {
      if (transport.dispatchRun && transport.onRun) return transport as Transport & RunQueue
    }
    return undefined
  }

  /** Does this member (default: the primary one) lose its tasks with the process? */
  volatile(id?: string): boolean {
    return this.member(id).volatile === true
  }

  /** Is this step alive on a volatile member in this process right now? */
  isRunning(stepId: string): boolean {
    return this.#members.some(({ transport }) => transport.isRunning?.(stepId) === true)
  }

  /** Running steps of volatile members report life at least this often, in ms. */
  beatEvery(ms: number): void {
    for (const { transport } of this.#members) transport.beatEvery?.(ms)
  }

  /** Closes every member, whatever the others do; throws the first error after all were tried. */
  async close(): Promise<void> {
    const outcomes = await Promise.allSettled(
      this.#members.map(async ({ transport }) => transport.close?.())
    )
    const failure = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failure) throw failure.reason
  }

  /** Backlog summed, live workers merged. `undefined` when no member can tell. */
  async groupHealth(group: string): Promise<GroupHealth | undefined> {
    const known = await this.#ask(({ groupHealth }) => groupHealth, group)
    if (known.length === 0) return undefined
    const merged: GroupHealth = {
      group,
      depth: known.reduce((sum, health) => sum + health.depth, 0),
      liveWorkers: uniqueBy(
        known.flatMap((health) => health.liveWorkers),
        (worker) => worker.instanceId
      ),
    }
    const kind = known.find((health) => health.kind !== undefined)?.kind
    if (kind !== undefined) merged.kind = kind
    return merged
  }

  /** Tokens with a live worker on any member. */
  async listWorkerGroups(): Promise<string[]> {
    const lists = await this.#ask(({ listWorkerGroups }) => listWorkerGroups)
    return [...new Set(lists.flat())]
  }

  async listWorkerDescriptors(token: string): Promise<WorkerDescriptor[]> {
    const lists = await this.#ask(({ listWorkerDescriptors }) => listWorkerDescriptors, token)
    return uniqueBy(lists.flat(), (descriptor) => descriptor.instanceId)
  }

  async readAllWorkerDescriptors(): Promise<WorkerDescriptor[]> {
    const lists = await this.#ask(({ readAllWorkerDescriptors }) => readAllWorkerDescriptors)
    return uniqueBy(lists.flat(), (descriptor) => descriptor.instanceId)
  }

  async readAllWorkerHeartbeats(): Promise<WorkerHeartbeat[]> {
    const lists = await this.#ask(({ readAllWorkerHeartbeats }) => readAllWorkerHeartbeats)
    return uniqueBy(lists.flat(), (beat) => JSON.stringify([beat.group, beat.instanceId]))
  }

  /** The first member whose keyspace reports a live worker on this token. */
  async transportWithLiveGroup(group: string): Promise<PoolMember | undefined> {
    for (const member of this.#members) {
      const groups = await member.transport.listWorkerGroups?.()
      if (groups?.includes(group)) return member
    }
    return undefined
  }

  /** Some member can tell who is out there: an empty answer then means an empty fleet. */
  get introspectsFleet(): boolean {
    return this.#members.some(
      ({ transport }) =>
        transport.listWorkerDescriptors ??
        transport.readAllWorkerDescriptors ??
        transport.readAllWorkerHeartbeats
    )
  }

  #named(id: string): PoolMember {
    const member = this.#members.find((candidate) => candidate.id === id)
    if (!member) throw new InvalidArgumentError(`transport "${id}"`, 'is not registered')
    return member
  }

  async #failOver(
    members: readonly PoolMember[],
    preferId: string | undefined,
    send: (transport: Transport, id: string) => Promise<void>
  ): Promise<string> {
    const preferred = preferId === undefined ? undefined : this.#named(preferId)
    const first = preferred && members.includes(preferred) ? [preferred] : []
    let failure: unknown = new TransportUnavailableError('no transport can carry this task')
    for (const { id, transport } of [...first, ...members.filter((m) => m !== preferred)]) {
      try {
        await send(transport, id)
        return id
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  /** The answers of the members that have the method; a member that is down is left out unless all are. */
  async #ask<Args extends unknown[], T>(
    method: (transport: Transport) => ((...args: Args) => Promise<T>) | undefined,
    ...args: Args
  ): Promise<T[]> {
    const able = this.#members.flatMap(({ transport }) => {
      const fn = method(transport)
      return fn ? [() => fn.apply(transport, args)] : []
    })
    const outcomes = await Promise.allSettled(able.map((ask) => ask()))
    const answers = outcomes.filter((outcome) => outcome.status === 'fulfilled')
    const failure = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failure && answers.length === 0) throw failure.reason
    return answers.map((answer) => answer.value)
  }
}

function uniqueBy<T>(items: readonly T[], key: (item: T) => string): T[] {
  const seen = new Map<string, T>()
  for (const item of items) if (!seen.has(key(item))) seen.set(key(item), item)
  return [...seen.values()]
}
