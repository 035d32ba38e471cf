/*
 * A transport with an engine's two ears, for the transport contract: it notes every result and beat, can
 * refuse deliveries, and waits with bounded polls only.
 */
import assert from 'node:assert/strict'
import { setImmediate as tick, setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../foundation/clock.ts'
import type { Transport } from '../../transport/ports.ts'
import type { StepHandler } from '../../types/step.ts'
import type { Heartbeat, RemoteTask, StepResult } from '../../wire/messages.ts'
import { routingToken } from '../../wire/names.ts'

const PATIENCE_MS = 15_000
const POLL_MS = 2

/** Waits until `check` holds; throws after 15 s. */
export async function eventually(what: string, check: () => boolean): Promise<void> {
  const deadline = systemClock() + PATIENCE_MS
  while (!check()) {
    if (systemClock() > deadline) throw new Error(`gave up waiting for ${what}`)
    await pause(POLL_MS)
  }
}

/** Work of a handler that takes its time. */
export const working = (ms: number): Promise<void> => pause(ms)

/** Repeats something until `check` holds; throws after 15 s. */
export async function repeated(
  what: string,
  again: () => Promise<unknown>,
  check: () => boolean
): Promise<void> {
  const deadline = systemClock() + PATIENCE_MS
  while (!check()) {
    if (systemClock() > deadline) throw new Error(`gave up waiting for ${what}`)
    await again()
    await pause(POLL_MS)
  }
}

/** Lets everything run that needs no timer, so that what must not happen had its chance. */
export async function quietly(): Promise<void> {
  for (let i = 0; i < 5; i++) await tick()
}

/** The sessions of one backend: results go to one engine, so the first of a namespace listens, others serve. */
export class Sessions {
  readonly #listening = new Set<string>()

  constructor(readonly prefix: string) {}

  over(
    transport: Transport,
    errors: unknown[],
    { namespace = 'default', deferred = false }: { namespace?: string; deferred?: boolean }
  ): TransportSession {
    if (deferred) transport.deferConsumers?.()
    const session = new TransportSession(transport, this.prefix, errors)
    if (this.#listening.has(namespace)) return session
    this.#listening.add(namespace)
    return session.listen()
  }
}

/** A transport with an engine's two ears, which note everything they hear. */
export class TransportSession {
  readonly results: StepResult[] = []
  readonly beats: Heartbeat[] = []
  /** Deliveries that will be refused, by step id. */
  readonly refusals = new Map<string, number>()
  /** Makes every heartbeat handler throw. */
  refuseBeats = false
  /** What it does with a result before it takes it. */
  intake: (result: StepResult) => Promise<void> = async () => {}
  #count = 0

  constructor(
    readonly transport: Transport,
    readonly prefix: string,
    /** What the transport reported to its `onError`. */
    readonly errors: unknown[] = []
  ) {}

  /** Starts to listen, as an engine does. */
  listen(): this {
    this.transport.onResult((result) => {
      this.results.push(result)
      const refusals = this.refusals.get(result.stepId) ?? 0
      this.refusals.set(result.stepId, refusals - 1)
      return refusals > 0 ? Promise.reject(new Error('refused')) : this.intake(result)
    })
    this.transport.onHeartbeat((beat) => {
      this.beats.push(beat)
      return this.refuseBeats ? Promise.reject(new Error('refused beat')) : Promise.resolve()
    })
    return this
  }

  serve(name: string, fn: StepHandler, partition?: string): void {
    assert.ok(this.transport.handle, 'the transport cannot serve handlers')
    this.transport.handle(name, fn, partition)
  }

  task(name: string, input: unknown, more: Partial<RemoteTask> = {}): RemoteTask {
    const seq = this.#count++
    const runId = `${this.prefix}-${name}`
    return {
      runId,
      seq,
      name,
      stepId: `${runId}:${seq}`,
      group: routingToken(name),
      input,
      attempt: 1,
      ...more,
    }
  }

  assertReported(message: string): void {
    const messages = this.errors.map((error) => (error as Error).message)
    assert.ok(messages.includes(message), messages.join(', '))
  }

  heard({ stepId }: { stepId: string }): StepResult[] {
    return this.results.filter((result) => result.stepId === stepId)
  }

  async resultOf(task: RemoteTask): Promise<StepResult> {
    await eventually(`the result of ${task.stepId}`, () => this.heard(task).length > 0)
    return this.heard(task)[0]
  }

  async roundTrip(name: string, input: unknown, more?: Partial<RemoteTask>): Promise<StepResult> {
    const task = this.task(name, input, more)
    await this.transport.dispatch(task)
    return this.resultOf(task)
  }

  /** The output of a step that is expected to complete. */
  async outputOf(name: string, input?: unknown, more?: Partial<RemoteTask>): Promise<unknown> {
    const result = await this.roundTrip(name, input, more)
    assert.equal(result.status, 'completed', result.error?.message)
    return result.output
  }
}
