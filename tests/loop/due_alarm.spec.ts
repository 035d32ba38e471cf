import { test } from '@japa/runner'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { DueAlarm } from '../../src/loop/due_alarm.ts'
import { runWorkerLoop } from '../../src/loop/worker_loop.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { FakeTime } from '../helpers/fake_time.ts'

const DAY = 86_400_000

function alarm() {
  const time = new FakeTime()
  const rang: number[] = []
  const began = time.now
  const due = new DueAlarm({
    ring: () => void rang.push(time.now - began),
    clock: time.clock,
    timers: time,
  })
  return { due, time, rang }
}

test.group('Due alarm', () => {
  test('rings once for each time, in their order, never early', async ({ assert }) => {
    const { due, time, rang } = alarm()
    for (const ms of [300, 100, 200, 100]) due.set(ms)
    await time.advance(99)
    assert.deepEqual(rang, [])
    await time.advance(DAY)
    assert.deepEqual(rang, [100, 200, 300])
    assert.equal(time.pending, 0)
  })

  test('times that lie together ring together', async ({ assert }) => {
    const { due, time, rang } = alarm()
    for (let ms = 1; ms <= 100; ms++) due.set(ms)
    await time.advance(1_000)
    assert.deepEqual(rang, [25, 50, 75, 100])
  })

  test('what is due already rings at once, what is weeks away then', async ({ assert }) => {
    const { due, time, rang } = alarm()
    due.set(0)
    due.set(60 * DAY)
    await time.advance(30 * DAY)
    assert.deepEqual(rang, [0])
    await time.advance(30 * DAY)
    assert.deepEqual(rang, [0, 60 * DAY])
  })

  test('of more times than it remembers it keeps the nearest', async ({ assert }) => {
    const { due, time, rang } = alarm()
    for (let i = 10_100; i > 0; i--) due.set(i * 1_000)
    await time.advance(10_001_000)
    assert.lengthOf(rang, 10_000)
    assert.equal(rang.at(-1), 10_000_000)
  })

  test('a stopped one is silent and leaves no timer', async ({ assert }) => {
    const { due, time, rang } = alarm()
    due.set(100)
    due.stop()
    assert.equal(time.pending, 0)
    await time.advance(DAY)
    assert.deepEqual(rang, [])
  })

  test('a loop that would poll in an hour wakes sleeping and delayed runs in time', async ({
    assert,
  }) => {
    const engine = new WorkflowEngine({ store: new InMemoryStateStore() })
    engine.register('sleepy', '1', async (ctx) => {
      for (let i = 0; i < 3; i++) await ctx.sleep(30)
      return 'awake'
    })
    engine.register('later', '1', async () => 'begun')
    const stop = deferred<void>()
    const loop = runWorkerLoop(engine, {
      intervalMs: 3_600_000,
      stopSignal: stop.promise,
      logger: { info: () => {}, error: (text) => assert.fail(text) },
    })
    await engine.start('sleepy', null, 'sleepy')
    await engine.start('later', null, 'later', { startAt: Date.now() + 60 })
    const end = { terminal: true, timeoutMs: 5_000 }
    const runs = await Promise.all([
      engine.waitForRun('sleepy', end),
      engine.waitForRun('later', end),
    ])
    assert.deepEqual(
      runs.map(({ output }) => output),
      ['awake', 'begun']
    )
    stop.resolve()
    assert.equal(await loop, 1)
  })
})
