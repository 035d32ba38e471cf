/*
 * Transport factories for config/durable.ts. Calling one imports nothing and opens nothing; the driver is
 * loaded when the engine is built. Every option of a driver passes through.
 */
import type { EventEmitterTransportConfig } from '../transport/event_emitter/event_emitter_transport.ts'
import type { InMemoryTransportOptions } from '../transport/memory/memory_transport.ts'
import type { Transport } from '../transport/ports.ts'
import { errorReporter, type FactoryContext } from './factory_context.ts'

export type { FactoryContext }

/** Builds a transport; called once per boot. */
export type TransportFactory = (context: FactoryContext) => Transport | Promise<Transport>

/** Everything is optional, and for tests. */
export type MemoryTransportConfig = InMemoryTransportOptions

export const transports = {
  /** Carries steps inside this process; meant for tests. The default when no transport is named. */
  memory(config: MemoryTransportConfig = {}): TransportFactory {
    return async (context) => {
      const { InMemoryTransport } = await import('../transport/memory/memory_transport.ts')
      const onError = config.onError ?? (await errorReporter(context, 'the memory transport'))
      return new InMemoryTransport({ ...config, onError })
    }
  },

  /** Carries steps inside this process over a Node EventEmitter; for production on one process. */
  eventEmitter(config: EventEmitterTransportConfig = {}): TransportFactory {
    return async (context) => {
      const driver = await import('../transport/event_emitter/event_emitter_transport.ts')
      const onError =
        config.onError ?? (await errorReporter(context, 'the event emitter transport'))
      return new driver.EventEmitterTransport({ ...config, onError })
    }
  },
}
