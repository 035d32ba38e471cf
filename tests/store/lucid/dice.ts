/*
 * Random arguments of store calls, the same ones for the same seed.
 */
import type { StepCheckpoint } from '../../../src/types/checkpoint.ts'
import type { ScheduleRecord } from '../../../src/types/schedule.ts'
import type { RunStatus, WorkflowRun } from '../../../src/types/run.ts'

export const RUNS = ['a', 'b', 'c', 'd']

export const STATUSES: RunStatus[] = [
  'pending',
  'running',
  'suspended',
  'blocked',
  'completed',
  'failed',
  'cancelled',
  'dead',
]

export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }

  below(n: number): number {
    return Math.floor(this.next() * n)
  }

  one<T>(items: readonly T[]): T {
    return items[this.below(items.length)]
  }

  maybe<T>(value: T, chance = 0.5): T | undefined {
    return this.next() < chance ? value : undefined
  }

  some<T>(make: () => T, most = 3): T[] {
    return Array.from({ length: this.below(most + 1) }, make)
  }

  run = () => this.one(RUNS)
  seq = () => this.below(6)
  token = () => `t${this.below(4)}`
  owner = () => this.one(['me', 'you'])
  turn = () => 1 + this.below(3)
  namespace = () => this.one([undefined, undefined, 'default', 'other'])
  group = () => this.one(['all:1', 'all:1:ff', 'all:1:n9:ff'])
  payload = () => this.one<unknown>([undefined, null, 0, '', 'x', { deep: ['\u0000', '\ud800'] }])

  row(runId: string, seq: number, nowMs: number): StepCheckpoint {
    return {
      runId,
      seq,
      name: `n${seq % 3}`,
      kind: this.one(['local', 'remote', 'signal']),
      stepId: `${runId}:${seq}`,
      status: this.one(['pending', 'pending', 'running', 'completed', 'failed']),
      ...present({
        input: this.payload(),
        output: this.payload(),
        error: this.maybe({ message: 'no' }, 0.2),
        wakeAt: this.maybe(nowMs + 50, 0.2),
        order: this.maybe(this.below(9), 0.2),
        parallelGroup: this.maybe(this.group(), 0.2),
        lastHeartbeatAt: this.maybe(new Date(nowMs - 1), 0.1),
      }),
      attempts: 1 + this.below(2),
      enqueuedAt: new Date(nowMs),
      startedAt: new Date(nowMs + 1),
      finishedAt: new Date(nowMs + 2),
    }
  }

  waiter(runId: string, seq: number, nowMs: number) {
    const parallelGroup = this.maybe(this.group())
    return {
      token: this.token(),
      runId,
      seq,
      ...present({ parallelGroup }),
      createdAt: new Date(nowMs),
    }
  }

  tags(): string[] {
    const marks = ['durable:singleton:admitted', 'durable:singleton:tracked', 'one']
    return [...marks.filter(() => this.next() < 0.4), 'singleton:k']
  }

  newRun(id: string, nowMs: number): WorkflowRun {
    return {
      id,
      workflow: this.one(['w1', 'w2']),
      workflowVersion: '1',
      status: this.one(['pending', 'pending', 'suspended']),
      input: this.payload(),
      ...present({
        namespace: this.namespace(),
        wakeAt: this.maybe(nowMs + 30),
        waitSeqs: this.maybe({ from: this.below(4), to: 3 }),
        tags: this.maybe(this.tags(), 0.6),
        searchAttributes: this.maybe({ n: this.below(5), s: this.token(), b: this.next() < 0.5 }),
      }),
      createdAt: new Date(nowMs - this.below(20)),
      updatedAt: new Date(nowMs),
    }
  }

  schedule(nowMs: number): Omit<ScheduleRecord, 'id'> {
    return {
      workflow: this.one(['w1', 'w2']),
      spec: this.payload(),
      paused: this.next() < 0.5,
      namespace: this.namespace(),
      lastFiredAt: this.maybe(nowMs - this.below(99)),
      createdAt: new Date(nowMs),
      updatedAt: new Date(nowMs),
    }
  }

  patch(nowMs: number): Partial<WorkflowRun> {
    const all: Partial<WorkflowRun> = {
      status: this.one(STATUSES),
      wakeAt: this.maybe(nowMs - 10 + this.below(60)),
      wakeRequestedAt: this.maybe(nowMs),
      waitSeqs: this.maybe({ from: this.below(4), to: 3 }),
      error: this.maybe({ message: 'boom' }),
      output: this.payload(),
      cancelRequestedAt: this.maybe(nowMs, 0.2),
      cancelCompensates: this.maybe(true),
      lockedBy: this.maybe('me'),
      lockedUntil: this.maybe(nowMs + 40),
      awaited: this.maybe(true),
      namespace: this.namespace(),
      searchAttributes: this.maybe({ n: this.below(5) }),
      createdAt: this.maybe(new Date(nowMs - this.below(20))),
      updatedAt: new Date(nowMs),
    }
    return Object.fromEntries(Object.entries(all).filter(() => this.next() < 0.3))
  }
}

export const present = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T

export function without<T extends object>(object: T, key: keyof T): T {
  const { [key]: dropped, ...rest } = object
  return rest as T
}
