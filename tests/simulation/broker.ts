/*
 * The broker: a transport that outlives every process. Workers answer late, twice and out of order; a
 * result comes again, at any process, until one acknowledges it. Handing a task over may fail before or
 * after the broker has it.
 */
import type { Transport } from '../../src/transport/ports.ts'
import type { Heartbeat, RemoteTask, StepResult } from '../../src/wire/messages.ts'
import type { Effects } from './effects.ts'
import { below, type Random } from './random.ts'
import type { Shadow } from './shadow.ts'
import type { ProcessTime, VirtualTime } from './virtual_time.ts'

export interface BrokerWorld {
  time: VirtualTime
  random: Random
  shadow: Shadow
  effects: Effects
  /** Absent: tasks are answered at fixed times, each once, in order. */
  faults?: { rate: number; active(): boolean; lossy: boolean }
  /** Rules that are off: a message is gone once it is handed over; recovery sends nothing. */
  hasty?: boolean
  forgetful?: boolean
  fail(kind: string, text: string): void
  note(text: () => string): void
  roll(text: string): number
}

interface Consumer {
  id: string
  time: ProcessTime
  onResult?: (result: StepResult) => Promise<void>
  onHeartbeat?: (beat: Heartbeat) => Promise<void>
}

/** What a dispatched step of a program is told. */
export interface StepInput {
  run: string
  id: number
  bad: boolean
  undo?: 'good' | 'bad'
  /** Of a fan's member. */
  index?: number
}

/** What a step answers: whose it is, and something of its own. */
export function stepOutput({ id, index }: StepInput, roll: number): string {
  return `S${id}.${index === undefined ? '' : `${index}.`}${Math.floor(1000 * roll)}`
}

const REDELIVERY_MS = 700

export class Broker {
  readonly #world: BrokerWorld
  readonly #consumers = new Set<Consumer>()
  tasks = 0

  constructor(world: BrokerWorld) {
    this.#world = world
  }

  /** The transport of one process. */
  connect(id: string, time: ProcessTime): Transport {
    const consumer: Consumer = { id, time }
    this.#consumers.add(consumer)
    return {
      dispatch: (task) => this.#dispatch(task, consumer),
      onResult: (handler) => {
        consumer.onResult = handler
      },
      onHeartbeat: (handler) => {
        consumer.onHeartbeat = handler
      },
    }
  }

  #dispatch(given: RemoteTask, sender: Consumer): Promise<void> {
    const { time, random, faults } = this.#world
    time.activity++
    const task = structuredClone(given)
    if (!sender.time.alive) return new Promise(() => {})
    this.#checkWritten(task)
    if (stepInput(task)?.id === undefined) this.#world.fail('misaddressed', JSON.stringify(task))
    if (!faults) {
      this.#accept(task)
      return Promise.resolve()
    }
    const k = faults.active() ? random() / (2 * faults.rate) : 1
    return new Promise((resolve, reject) => {
      time.after(1 + 10 * random(), () => {
        if (!sender.time.alive && random() < 0.3) return
        if (k >= 0.5) this.#accept(task)
        time.after(1 + 5 * random(), () => {
          if (!sender.time.alive) return
          if (k < 1) reject(new Error('the broker did not answer'))
          else resolve()
        })
      })
    })
  }

  /** A row precedes its dispatch (invariant 2). */
  #checkWritten({ runId, seq, stepId }: RemoteTask): void {
    const { shadow, fail } = this.#world
    const rows = shadow.rows(runId)
    if (!rows.some((row) => row.stepId === stepId)) fail('undispatchable', `${stepId} has no row`)
    else if (seq >= 0 && rows.find((row) => row.seq === seq)?.kind !== 'remote') {
      fail('undispatchable', `${stepId} is no dispatched step`)
    }
  }

  #accept(task: RemoteTask): void {
    const { time, random, faults, note } = this.#world
    if (
      this.#world.forgetful &&
      this.#world.shadow.run(task.runId)?.lockedBy?.endsWith('recovery')
    ) {
      return
    }
    this.tasks++
    note(() => `the broker has ${task.stepId} attempt ${task.attempt}`)
    if (!faults) {
      const { id, index } = stepInput(task)
      const key = `${task.name} ${id} ${index}`
      const result = this.#work(task, `${key} ${task.attempt}`)
      const delay = 20 + 7 * Math.floor(50 * this.#world.roll(`delay ${key}`))
      time.after(delay, () => this.#deliver(result, 0))
      return
    }
    // Only where the engines send again may a broker lose anything.
    if (faults.lossy && faults.active() && random() < 0.05) return
    const k = random()
    const delay = k < 0.3 ? 30 : k < 0.8 ? 600 : 2000
    const at = 10 + delay * random()
    time.after(at, () => {
      const result = this.#work(task, `${task.stepId} ${task.attempt} ${this.tasks}`)
      this.#deliver(result, 0)
      if (random() < 0.15) time.after(1.5 * delay * random(), () => this.#deliver(result, Infinity))
    })
    if (random() < 0.3) time.after(at * random(), () => this.#beat(task))
  }

  /** A worker runs the task. */
  #work(task: RemoteTask, key: string): StepResult {
    const { roll, effects, time } = this.#world
    const input = stepInput(task)
    const { id, bad, undo } = input
    const { runId, seq, stepId } = task
    const isUndo = task.name === 'undo'
    const share = isUndo ? (undo === 'bad' ? 0.5 : 0.02) : bad ? 0.5 : 0.03
    const startedAt = Math.floor(time.now)
    if (roll(`fails ${key}`) < share) {
      const error = { message: `${task.name} ${id}`, ...(isUndo ? {} : fatality(roll(key))) }
      return { runId, seq, stepId, status: 'failed', error, startedAt }
    }
    if (isUndo) effects.undone(runId, `s${id}`)
    const output = isUndo ? 'undone' : stepOutput(input, roll(`output ${key}`))
    return { runId, seq, stepId, status: 'completed', output, startedAt }
  }

  #deliver(result: StepResult, attempt: number): void {
    const { time, note } = this.#world
    const consumer = this.#any()
    if (!consumer) {
      time.after(200, () => this.#deliver(result, attempt))
      return
    }
    note(() => `${consumer.id} is told ${result.stepId} ${result.status}`)
    let acknowledged = false
    consumer.onResult!(structuredClone(result)).then(
      () => {
        acknowledged = true
      },
      () => {}
    )
    if (!this.#world.faults || this.#world.hasty || attempt === Infinity) return
    time.after(REDELIVERY_MS, () => {
      if (!acknowledged && attempt < 200) this.#deliver(result, attempt + 1)
    })
  }

  #beat({ runId, seq, stepId, group }: RemoteTask): void {
    const beat: Heartbeat = { runId, seq, stepId, group, progress: { half: true } }
    void this.#any()
      ?.onHeartbeat?.(beat)
      .catch(() => {})
  }

  #any(): Consumer | undefined {
    const { random, faults } = this.#world
    const alive = [...this.#consumers].filter(({ time, onResult }) => time.alive && onResult)
    return faults ? alive[below(random, alive.length)] : alive[0]
  }
}

/** A task's own input, or the input of what it undoes. */
function stepInput(task: RemoteTask): StepInput {
  const input = task.input as StepInput | { input: StepInput }
  return task.name === 'undo' && 'input' in input ? input.input : (input as StepInput)
}

/** Some failures forbid another attempt. */
const fatality = (k: number) => (k < 0.1 ? { retryable: false } : {})
