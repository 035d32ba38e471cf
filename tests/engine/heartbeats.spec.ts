/*
 * Heartbeats of many steps at once: each of them is known to be alive.
 */
import { test } from '@japa/runner'
import { Heartbeats } from '../../src/engine/delivery/heartbeats.ts'
import { FakeTime } from '../helpers/fake_time.ts'

test.group('Heartbeats', () => {
  test('of more steps than are tracked, none falls silent', async ({ assert }) => {
    const time = new FakeTime()
    const persisted = new Map<number, number>()
    const heartbeats = new Heartbeats({
      store: {
        recordStepHeartbeat: async (_, seq) => void persisted.set(seq, time.now),
      },
      clock: time.clock,
      timers: time,
      silenceMs: 30_000,
      report: (error) => assert.fail(String(error)),
    })
    const beat = async (steps: number) => {
      for (let seq = 0; seq < steps; seq++) {
        const stepId = `r:${seq}`
        await heartbeats.onHeartbeat({ runId: 'r', seq, stepId, group: 's', at: time.now })
      }
    }
    for (let round = 0; round < 3; round++) {
      await beat(5000)
      await time.advance(7_500)
      const silent = Array.from({ length: 5000 }, (_, seq) => seq).filter(
        (seq) => time.now - (persisted.get(seq) ?? 0) > 7_500
      )
      assert.lengthOf(silent, 0)
    }
    heartbeats.close()
  })
})
