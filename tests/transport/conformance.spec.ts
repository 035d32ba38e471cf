import { EventEmitter } from 'node:events'
import { test } from '@japa/runner'
import {
  type TransportBench,
  TransportSession,
  assertTransportConformance,
  transportCases,
} from '../../src/testing/contracts/transport.ts'
import type { Transport } from '../../src/transport/ports.ts'
import { EventEmitterTransport } from '../../src/transport/event_emitter/event_emitter_transport.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'

interface Options {
  namespace?: string
  onError: (error: unknown) => void
}

/** Driver → how it opens transports on one private backend; `shared` when several can meet there. */
const DRIVERS: { name: string; shared: boolean; backend: () => (o: Options) => Transport }[] = [
  {
    name: 'memory',
    shared: false,
    backend: () => (options) => new InMemoryTransport(options),
  },
  {
    name: 'eventEmitter',
    shared: true,
    backend: () => {
      const emitter = new EventEmitter()
      return (options) => new EventEmitterTransport({ ...options, emitter })
    },
  },
]

for (const driver of DRIVERS) {
  test.group(`transport contract | ${driver.name}`, () => {
    for (const { title, needs, run } of transportCases) {
      if (needs === 'shared' && !driver.shared) continue
      test(title, async ({ cleanup }) => {
        const open = driver.backend()
        const bench: TransportBench = {
          session: async ({ namespace, deferred } = {}) => {
            const errors: unknown[] = []
            const transport = open({ namespace, onError: (error) => errors.push(error) })
            cleanup(() => transport.close?.())
            if (deferred) transport.deferConsumers?.()
            return new TransportSession(transport, driver.name, errors).listen()
          },
        }
        await run(bench)
      })
    }

    test('assertTransportConformance accepts it and closes it', async ({ assert }) => {
      const transport = driver.backend()({ onError: () => {} })
      await assertTransportConformance(transport)
      const task = new TransportSession(transport, 'late').task('x', null)
      await assert.rejects(() => transport.dispatch(task), /closed/)
    })
  })
}

test.group('transport contract', () => {
  test('a transport that loses results is named with the case', async ({ assert }) => {
    const transport = new InMemoryTransport({
      intercept: (result, deliver) => deliver({ ...result, output: 'tampered' }),
    })
    await assert.rejects(
      () => assertTransportConformance(transport),
      /transport conformance: a dispatched step reaches its handler/
    )
  })
})
