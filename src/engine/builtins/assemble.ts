/*
 * The part of the composition root that is made of runs itself: entities, and starts by batches of events.
 */
import type { Timers } from '../../foundation/clock.ts'
import { bestEffort } from '../../foundation/failure.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { Signals } from '../delivery/signals.ts'
import type { Drain } from '../drain.ts'
import type { EventHub } from '../event_hub.ts'
import type { Registry } from '../registry.ts'
import type { RunLeases } from '../runs/run_leases.ts'
import type { Starter } from '../runs/starter.ts'
import { Accumulators } from './accumulators.ts'
import { Entities } from './entities.ts'
import { EntityLinks } from './entity_links.ts'

export interface BuiltinsOptions {
  store: FullStore
  registry: Registry
  starter: Starter
  signals: Signals
  hub: EventHub
  drain: Drain
  leases: RunLeases
  timers: Timers
  instanceId: string
  maxPayloadBytes: number
  report: (error: unknown, what: string) => void
}

export function assembleBuiltins(options: BuiltinsOptions) {
  const { store, registry, starter, signals, hub, drain, maxPayloadBytes, report } = options
  const { leases, timers, instanceId } = options
  const entityLinks = new EntityLinks({ store, starter, leases, timers, instanceId })
  const inBackground = (work: Promise<unknown>) =>
    void drain.track(bestEffort('the next operation starts it', work, report))
  return {
    entityLinks,
    entities: new Entities({
      store,
      registry,
      links: entityLinks,
      signals,
      hub,
      inBackground,
      maxPayloadBytes,
    }),
    accumulators: new Accumulators({ store, registry, starter, signals, report }),
  }
}
