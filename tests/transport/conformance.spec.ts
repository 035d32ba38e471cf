import { EventEmitter } from 'node:events'
import { test } from '@japa/runner'
import { runTransportContract, type TransportAbility } from '../../src/testing/conformance.ts'
import {
  TransportSession,
  assertTransportConformance,
} from '../../src/testing/contracts/transport.ts'
import type { Transport } from '../../src/transport/ports.ts'
import type { Timers } from '../../src/foundation/clock.ts'
import { EventEmitterTransport } from '../../src/transport/event_emitter/event_emitter_transport.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'

interface Options {
  namespace?: string
  timers?: Timers
  onError: (error: unknown) => void
}

/** Driver → how it opens transports on one private backend. */
const DRIVERS: {
  name: string
  abilities: TransportAbility[]
  backend: () => (o: Options) => Transport
}[] = [
  {
    name: 'memory',
    abilities: ['timers'],
    backend: () => (options) => new InMemoryTransport(options),
  },
  {
    name: 'eventEmitter',
    abilities: ['shared', 'timers'],
    backend: () => {
      const emitter = new EventEmitter()
      return (options) => new EventEmitterTransport({ ...options, emitter })
    },
  },
]

for (const { name, abilities, backend } of DRIVERS) {
  runTransportContract(`transport contract | ${name}`, () => ({ open: backend(), abilities }))

  test.group(`transport contract | ${name}, at once`, () => {
    test('assertTransportConformance accepts it and closes it', async ({ assert }) => {
      const transport = backend()({ onError: () => {} })
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

  test('a transport that drops pickup beats is named with the case', async ({ assert }) => {
    const transport = new (class extends InMemoryTransport {
      override onHeartbeat(handler: Parameters<InMemoryTransport['onHeartbeat']>[0]): void {
        super.onHeartbeat(async (beat) => {
          if (beat.progress !== undefined) await handler(beat)
        })
      }
    })()
    await assert.rejects(
      () => assertTransportConformance(transport),
      /transport conformance: a pickup beat arrives before the handler ends, then its progress/
    )
  }).tags(['@control-38'])
})
