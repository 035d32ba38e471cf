/*
 * How often a queue transport looks at queues that are empty: less and less often for work, never for
 * what somebody waits for.
 */
import { test } from '@japa/runner'
import { type QueueAdapter, QueueTransport } from '../../../src/transport/queue/queue_transport.ts'
import { FakeTime } from '../../helpers/fake_time.ts'

test.group('queue | idle loops', () => {
  test('tasks and heartbeats are looked for less often, answers and run hints are not', async ({
    assert,
    cleanup,
  }) => {
    const time = new FakeTime()
    const looks: Record<string, number> = {}
    const adapter = {
      setWorkerId: () => {},
      pushOn: async () => {},
      popFrom: async (queue: string) => {
        looks[queue] = (looks[queue] ?? 0) + 1
        return null
      },
      sizeOf: async () => 0,
      destroy: async () => {},
    } as unknown as QueueAdapter
    const transport = new QueueTransport({
      adapter,
      pollIntervalMs: 100,
      idleBackoffMax: 4,
      clock: time.clock,
      timers: time,
    })
    cleanup(() => transport.close())
    transport.handle('work', () => null)
    transport.onResult(async () => {})
    transport.onHeartbeat(async () => {})
    transport.onDecision(async () => {})
    transport.onRun('default', async () => {})
    await time.advance(0)
    await time.advance(10_050)
    // At once, then every 100 ms; with backoff after 100 and 200 ms, then every 400.
    assert.deepEqual(looks, {
      'durable:tasks:work': 3 + 24,
      'durable:heartbeats': 3 + 24,
      'durable:results': 1 + 100,
      'durable:decisions': 1 + 100,
      'durable:runs:default': 1 + 100,
    })
  })
})
