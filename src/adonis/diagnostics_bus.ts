/*
 * Listening to the diagnostics bus without importing it. Libraries report through the function that the bus
 * leaves under a registry symbol, `emit(lib, event, payload)`, and the bus publishes each report on the Node
 * channel `agora:<lib>:<event>`. The function is looked at through an accessor, so that a bus that is
 * loaded later, or none, makes no difference; who publishes on a channel directly is heard where the event
 * is named exactly, since Node has no pattern of channels. A report that takes both ways counts once.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { DiagnosticsTriggerConfig } from '../types/workflow.ts'

const EMIT: unique symbol = Symbol.for('@agora/diagnostics:emit') as never

type Emit = (lib: string, event: string, payload: unknown) => unknown

interface Report {
  lib: string
  event: string
  payload: unknown
}

interface Tap {
  wants: (lib: string, event: string) => boolean
  heard: (report: Report) => void
}

const slots = globalThis as { [EMIT]?: Emit }
const taps = new Set<Tap>()
/** What is being emitted just now: everything about it happens in one synchronous call. */
let current: Report | undefined
let removeAccessor: (() => void) | undefined

/**
 * Calls `heard` with every report that a trigger names, in the call that reports it. `heard` must not
 * throw. Answers what ends it.
 */
export function listenToDiagnostics(
  { lib, event }: DiagnosticsTriggerConfig,
  heard: (report: Report) => void
): () => void {
  const tap: Tap = { wants: (from, name) => from === lib && matches(event, name), heard }
  taps.add(tap)
  removeAccessor ??= watchSlot()
  const stopChannel = typeof event === 'string' ? watchChannel(lib, event, heard) : () => {}
  return () => {
    if (!taps.delete(tap)) return
    stopChannel()
    if (taps.size > 0) return
    removeAccessor?.()
    removeAccessor = undefined
  }
}

function matches(event: string | RegExp | undefined, name: string): boolean {
  if (event === undefined) return true
  if (typeof event === 'string') return event === name
  // A global or sticky pattern remembers where it stopped.
  event.lastIndex = 0
  return event.test(name)
}

function watchChannel(lib: string, event: string, heard: Tap['heard']): () => void {
  const channel = `agora:${lib}:${event}`
  const listener = (payload: unknown) => {
    if (current?.lib === lib && current.event === event) return
    heard({ lib, event, payload })
  }
  subscribe(channel, listener)
  return () => void unsubscribe(channel, listener)
}

/** Puts the slot behind an accessor; answers what turns it into a plain slot again. */
function watchSlot(): () => void {
  let held = slots[EMIT]
  let watched: { of: Emit; emit: Emit } | undefined
  const get = (): Emit | undefined => {
    if (typeof held !== 'function') return held
    if (watched?.of !== held) watched = { of: held, emit: watching(held) }
    return watched.emit
  }
  const set = (emit: Emit | undefined) => void (held = emit)
  const isOurs = () => Object.getOwnPropertyDescriptor(slots, EMIT)?.get === get
  // A slot that its owner sealed leaves the channels.
  if (!Reflect.defineProperty(slots, EMIT, { get, set, configurable: true, enumerable: true })) {
    return () => {}
  }
  return () => {
    // Somebody may look through ours by now: without taps it only passes on.
    if (!isOurs()) return
    delete slots[EMIT]
    if (held !== undefined) slots[EMIT] = held
  }
}

function watching(emit: Emit): Emit {
  return (lib, event, payload) => {
    // Once more by way of somebody who wrapped us.
    if (current?.lib === lib && current.event === event && current.payload === payload) {
      return emit(lib, event, payload)
    }
    const outer = current
    const report = { lib, event, payload }
    current = report
    try {
      return emit(lib, event, payload)
    } finally {
      current = outer
      for (const tap of [...taps]) if (tap.wants(lib, event)) tap.heard(report)
    }
  }
}
