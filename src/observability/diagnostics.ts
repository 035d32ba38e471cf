/*
 * The bridge to the diagnostics bus: every event of an engine goes there as `durable` / `<event type>`. The
 * bus leaves a function under a registry symbol; it is looked for at every event, so one that is loaded
 * later hears what comes then, and without one nothing happens.
 */
import { isolate } from '../foundation/failure.ts'
import { parentRunIdOf } from '../foundation/ids.ts'
import type { EngineEvent } from '../types/engine_event.ts'
import { isRemoteEvent } from '../wire/remote_events.ts'
import type { DurableEventSource } from './metrics.ts'

const EMIT: unique symbol = Symbol.for('@agora/diagnostics:emit') as never
const LIBRARY = 'durable'

const slots = globalThis as {
  [EMIT]?: (library: string, event: string, payload: unknown) => unknown
}

/** An event as the bus has it: of a child whose id the engine derived, with the run that started it. */
export type DurableDiagnostic = EngineEvent & { parentRunId?: string }

/**
 * Passes every event of an engine to the diagnostics bus; the answer stops it. Events that were heard from
 * other instances only with `includeRemote`: each instance reports its own. The provider attaches it: a
 * second time would report everything twice.
 */
export function attachDurableDiagnostics(
  engine: DurableEventSource,
  options: { includeRemote?: boolean } = {}
): () => void {
  return engine.subscribe((event) => {
    const emit = slots[EMIT]
    if (typeof emit !== 'function') return
    if (isRemoteEvent(event) && !options.includeRemote) return
    isolate(() => emit(LIBRARY, event.type, diagnosticOf(event)))
  })
}

function diagnosticOf(event: EngineEvent): DurableDiagnostic {
  const parentRunId = parentRunIdOf(event.runId)
  return parentRunId === undefined ? event : { ...event, parentRunId }
}
