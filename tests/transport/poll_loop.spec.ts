import { test } from '@japa/runner'
import { PollLoop } from '../../src/transport/poll_loop.ts'
import { ManualTime, settled } from './manual_time.ts'

/** A loop over time of its own, and how long it slept between its looks. */
function loopOf(idleBackoffMax: number, poll: () => Promise<boolean> = async () => false) {
  const time = new ManualTime()
  const errors: unknown[] = []
  let looks = 0
  const loop = new PollLoop({
    poll: () => {
      looks++
      return poll()
    },
    intervalMs: 100,
    idleBackoffMax,
    timers: time,
    onError: (error) => errors.push(error),
  })
  const pauses = async (count: number) => {
    const slept: (number | undefined)[] = []
    for (let i = 0; i < count; i++) {
      slept.push(time.untilNext)
      await time.advance(time.untilNext ?? 0)
    }
    return slept
  }
  return { loop, time, errors, pauses, looks: () => looks }
}

test.group('poll loop', () => {
  test('without work it looks less and less often, up to the bound', async ({ assert }) => {
    const { loop, pauses } = loopOf(4)
    loop.kick()
    await settled()
    assert.deepEqual(await pauses(5), [100, 200, 400, 400, 400])
  })

  test('a bound of 1 is no backoff', async ({ assert }) => {
    const { loop, pauses } = loopOf(1)
    loop.kick()
    await settled()
    assert.deepEqual(await pauses(3), [100, 100, 100])
  })

  test('work, or who tells of some, ends the backoff', async ({ assert }) => {
    let hasWork = false
    const { loop, pauses } = loopOf(4, async () => hasWork)
    loop.kick()
    await settled()
    assert.deepEqual(await pauses(3), [100, 200, 400])
    loop.kick()
    await settled()
    assert.deepEqual(await pauses(2), [100, 200])
    hasWork = true
    assert.deepEqual(await pauses(2), [400, 400])
    assert.deepEqual(await pauses(2), [100, 100])
  })

  test('a look that fails is reported, and the loop goes on until it is stopped', async ({
    assert,
  }) => {
    const { loop, time, errors, looks } = loopOf(1, () => Promise.reject(new Error('down')))
    loop.kick()
    await settled()
    await time.advance(200)
    assert.deepEqual([looks(), errors.length], [3, 3])
    await loop.stop()
    loop.kick()
    await time.advance(1_000)
    assert.deepEqual([looks(), time.pending], [3, 0])
  })
})
