/*
 * The link to the other engines: what happens here is published, what they publish is told here. All of it
 * is a hint: a message may be lost, doubled or late, and nothing waits for it.
 */
import type { ControlPlane } from '../control_plane/port.ts'
import type { Cancel, Clock, Timers } from '../foundation/clock.ts'
import { isolate } from '../foundation/failure.ts'
import type { EngineEvent } from '../types/engine_event.ts'
import type { ControlMessage } from '../wire/messages.ts'
import { markRemote } from '../wire/remote_events.ts'

export interface ControlLinkOptions {
  plane?: ControlPlane
  instanceId: string
  clock: Clock
  timers: Timers
  /** Takes runs that nobody has taken yet, if this process takes any. */
  takePending: (runId: string) => unknown
  onEvent: (event: EngineEvent) => void
  onCancel: (runId: string) => void
  onSchedulePaused: (key: string, paused: boolean) => void
  report: (error: unknown, what: string) => void
}

/** Between two repetitions of what was said here of schedules, in ms. */
const REPEAT_PAUSES_MS = 60_000

/** Between two looks for runs that were enqueued elsewhere, in ms; the first one is at once. */
const LOOK_EVERY_MS = 50

export class ControlLink {
  readonly #options: ControlLinkOptions
  readonly #listeners = new Set<{ call: (runId: string) => void }>()
  /** The last word on each schedule: said here, and repeated from here, or heard. */
  readonly #words = new Map<string, { paused: boolean; at: number; ours: boolean }>()
  #repeating?: Cancel
  #isFailing = false
  /** A look was taken a moment ago; another one is wanted of this run. */
  #pause?: { wanted?: string }

  constructor(options: ControlLinkOptions) {
    this.#options = options
    options.plane?.onControl((message) => this.#hear(message))
  }

  /** Calls back for runs that other instances enqueue; the answer stops it. */
  onEnqueued(listener: (runId: string) => void): () => void {
    const entry = { call: listener }
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  event(event: EngineEvent): void {
    this.#publish({ kind: 'event', event })
  }

  cancelled(runId: string): void {
    this.#publish({ kind: 'cancel', runId })
  }

  /** A run is `pending`; `taken` when it executes here already, so that nobody need look for it. */
  enqueued(runId: string, taken: boolean): void {
    this.#publish({ kind: 'enqueued', runId, ...(taken ? { taken } : {}) })
  }

  /** Said again every minute until `close`, for instances that come later. */
  schedulePaused(key: string, paused: boolean): void {
    // Later than what it contradicts, whatever the clocks say.
    const at = Math.max(this.#options.clock(), (this.#words.get(key)?.at ?? 0) + 1)
    this.#words.set(key, { paused, at, ours: true })
    this.#publish({ kind: 'schedulePaused', key, paused, at })
    if (!this.#options.plane) return
    this.#repeating ??= this.#options.timers.every(REPEAT_PAUSES_MS, () => {
      for (const [said, { ours, ...word }] of this.#words) {
        if (ours) this.#publish({ kind: 'schedulePaused', key: said, ...word })
      }
    })
  }

  /** Repeats nothing any more. */
  close(): void {
    this.#repeating?.()
  }

  #publish(message: ControlMessage): void {
    const { plane, instanceId, report } = this.#options
    if (!plane) return
    const publish = async () => plane.publishControl({ from: instanceId, ...message })
    publish().then(
      () => void (this.#isFailing = false),
      (error) => {
        if (!this.#isFailing) report(error, 'other instances are not told what happens here')
        this.#isFailing = true
      }
    )
  }

  #hear(message: ControlMessage): void {
    if (message.from === this.#options.instanceId) return
    const { onEvent, onCancel, onSchedulePaused } = this.#options
    switch (message.kind) {
      case 'event':
        if (!isEvent(message.event)) return
        return onEvent(markRemote({ ...message.event, at: new Date(message.event.at) }))
      case 'cancel':
        return isText(message.runId) ? onCancel(message.runId) : undefined
      case 'enqueued':
        return isText(message.runId) ? this.#enqueued(message.runId, message.taken) : undefined
      case 'schedulePaused':
        if (!isText(message.key) || !this.#isLastWord(message)) return
        return onSchedulePaused(message.key, !!message.paused)
    }
  }

  /** Who spoke last repeats it. A repetition may cross the word that contradicts it. */
  #isLastWord({ key, paused, at }: { key: string; paused: boolean; at?: number }): boolean {
    const known = this.#words.get(key)
    const saidAt = typeof at === 'number' ? at : (known?.at ?? 0) + 1
    if (known && (saidAt < known.at || (saidAt === known.at && !paused))) return false
    this.#words.set(key, { paused: !!paused, at: saidAt, ours: false })
    return true
  }

  #enqueued(runId: string, taken: boolean | undefined): void {
    for (const { call } of [...this.#listeners]) {
      isolate(
        () => call(runId),
        (error) => this.#options.report(error, 'a listener of enqueued runs')
      )
    }
    if (!taken) this.#look(runId)
  }

  /** One look takes whatever is there, so a burst of news needs few. */
  #look(runId: string): void {
    if (this.#pause) {
      this.#pause.wanted = runId
      return
    }
    const { timers, takePending, report } = this.#options
    timers.after(LOOK_EVERY_MS, () => {
      const wanted = this.#pause?.wanted
      this.#pause = undefined
      if (wanted !== undefined) this.#look(wanted)
    })
    this.#pause = {}
    isolate(
      () => takePending(runId),
      (error) => report(error, 'the pending poll finds runs of other instances')
    )
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'

/** Whatever else it says is shown, not acted on. */
const isEvent = (event: unknown): event is EngineEvent =>
  typeof event === 'object' &&
  event !== null &&
  isText((event as EngineEvent).type) &&
  isText((event as EngineEvent).runId)
