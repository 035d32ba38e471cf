/*
 * Flow-control slots: some worlds register a queue that every third step names. Steps that one process
 * let out may never be more at once than its queue allows; where nobody registers it, it is no gate.
 */
import type { QueueConfig } from '../../src/flow/port.ts'
import { isTerminalStatus } from '../../src/types/run.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { Operation, Shadow } from './shadow.ts'
import { seeded } from './random.ts'

export const QUEUE = 'q'

/** The queue of a world, drawn apart from its story; most have none. */
export function queueOf(seed: number): QueueConfig | undefined {
  const random = seeded(seed ^ 0x2545f491)
  if (random() < 0.7) return undefined
  const queue: QueueConfig = { name: QUEUE, concurrency: random() < 0.7 ? 1 : 2, retryMs: 250 }
  if (random() < 0.5) queue.fairness = 'key'
  if (random() < 0.2) queue.rateLimit = { limit: 2, periodMs: 300 }
  return queue
}

/** Whether the step of this leaf passes the queue. */
export const isQueued = (leafId: number): boolean => leafId % 3 === 0

export class Slots {
  readonly #limit: number
  readonly #shadow: Shadow
  readonly #fail: (kind: string, text: string) => void
  /** Steps by the process that let them out last. */
  readonly #out = new Map<string, { process: string; row: StepCheckpoint }>()

  constructor(
    queue: QueueConfig | undefined,
    world: { shadow: Shadow; fail: (kind: string, text: string) => void }
  ) {
    this.#limit = queue?.concurrency ?? Infinity
    this.#shadow = world.shadow
    this.#fail = world.fail
  }

  rowChanged(before: StepCheckpoint | undefined, row: StepCheckpoint, by: Operation): void {
    const [, leafId] = /^s(\d+)$/.exec(row.name) ?? []
    if (leafId === undefined || !isQueued(Number(leafId)) || by.name !== 'commitTurn') return
    if (row.status !== 'pending' || isSameDispatch(before, row)) return
    this.#out.set(row.stepId, { process: by.process, row })
    const others = [...this.#out.values()].filter((one) => one.process === by.process)
    const out = others.filter((one) => this.#isOut(one.row))
    if (out.length <= this.#limit) return
    const steps = out.map((one) => one.row.stepId).join(', ')
    this.#fail('crowded', `${by.process} let ${steps} out at once, at most ${this.#limit} may be`)
  }

  #isOut({ runId, seq, stepId }: StepCheckpoint): boolean {
    const run = this.#shadow.run(runId)
    const now = this.#shadow.row(runId, seq)
    if (!run || isTerminalStatus(run.status) || now?.status !== 'pending') this.#out.delete(stepId)
    return this.#out.has(stepId)
  }
}

/** A later deadline is no dispatch. */
const isSameDispatch = (before: StepCheckpoint | undefined, row: StepCheckpoint): boolean =>
  before?.status === 'pending' && before.enqueuedAt.getTime() === row.enqueuedAt.getTime()
