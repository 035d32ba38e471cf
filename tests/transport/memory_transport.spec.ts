import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from '@japa/runner'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import type { InMemoryTransportOptions } from '../../src/transport/memory/memory_transport.ts'
import type {
  ControlMessage,
  Heartbeat,
  RemoteTask,
  StepResult,
  WorkflowStepEvent,
} from '../../src/wire/messages.ts'
import { ManualTime, settled } from './manual_time.ts'

let count = 0
const task = (name = 'work', more: Partial<RemoteTask> = {}): RemoteTask => {
  const seq = count++
  return { runId: 'r', seq, name, stepId: `r:${seq}`, group: name, input: seq, attempt: 1, ...more }
}

function setup(options: InMemoryTransportOptions = {}) {
  const time = new ManualTime()
  const errors: unknown[] = []
  const transport = new InMemoryTransport({
    clock: time.clock,
    timers: time,
    onError: (error) => errors.push(error),
    ...options,
  })
  const results: StepResult[] = []
  transport.handle('work', (input) => input)
  const listen = () =>
    transport.onResult((result) => {
      results.push(result)
      return Promise.resolve()
    })
  return { time, errors, transport, results, listen }
}

test.group('InMemoryTransport', () => {
  test('dispatch without a result handler is refused', async ({ assert }) => {
    const { transport, listen } = setup()
    await assert.rejects(() => transport.dispatch(task()), 'no result handler registered')
    listen()
    await transport.dispatch(task())
    await transport.close()
    await assert.rejects(() => transport.dispatch(task()), /is closed/)
  })

  test('it is volatile, and knows what is queued, running or not yet accepted', async ({
    assert,
  }) => {
    const { transport, time, errors } = setup()
    assert.isTrue(transport.volatile)
    let accept = false
    transport.onResult(() => (accept ? Promise.resolve() : Promise.reject(new Error('not yet'))))
    let finish: () => void = () => {}
    transport.handle('slow', () => new Promise<void>((resolve) => (finish = resolve)))
    const one = task('slow')
    assert.isFalse(transport.isRunning(one.stepId))
    await transport.dispatch(one)
    assert.isTrue(transport.isRunning(one.stepId))
    assert.equal(transport.inFlight, 1)
    await settled()
    assert.isTrue(transport.isRunning(one.stepId))
    finish()
    await settled()
    assert.lengthOf(errors, 1)
    assert.isTrue(transport.isRunning(one.stepId))
    accept = true
    await time.advance(200)
    assert.isFalse(transport.isRunning(one.stepId))
    assert.equal(transport.inFlight, 0)
  })

  test('a refused result comes again after 100 ms, doubling to 10 s, ± 20 %', async ({
    assert,
  }) => {
    const { transport, time, errors } = setup()
    let deliveries = 0
    transport.onResult(() => {
      deliveries += 1
      return Promise.reject(new Error('store down'))
    })
    await transport.dispatch(task())
    await settled()
    for (let failures = 1; failures <= 12; failures++) {
      assert.equal(deliveries, failures)
      const wait = time.untilNext!
      const expected = Math.min(100 * 2 ** (failures - 1), 10_000)
      assert.isTrue(wait >= expected * 0.8 && wait <= expected * 1.2, `${wait} of ${expected}`)
      await time.advance(wait)
    }
    assert.lengthOf(errors, 13)
    await transport.close()
    assert.equal(time.pending, 0)
  })

  test('the engine that came last takes results; when it refuses, the others get a chance', async ({
    assert,
  }) => {
    const { transport, time } = setup()
    const asked: string[] = []
    let newAccepts = true
    transport.onResult(() => Promise.resolve(void asked.push('old')))
    transport.onResult(() => {
      asked.push('new')
      return newAccepts ? Promise.resolve() : Promise.reject(new Error('unknown workflow'))
    })
    await transport.dispatch(task())
    await settled()
    assert.deepEqual(asked, ['new'])
    newAccepts = false
    await transport.dispatch(task())
    await settled()
    await time.advance(200)
    assert.deepEqual(asked, ['new', 'new', 'old'])
  })

  test('a running step beats by itself until it ends or the transport closes', async ({
    assert,
  }) => {
    const { transport, time, listen } = setup({ heartbeatIntervalMs: 1000 })
    listen()
    const beats: Heartbeat[] = []
    transport.onHeartbeat((beat) => Promise.resolve(void beats.push(beat)))
    transport.handle('slow', () => new Promise(() => {}))
    const slow = task('slow')
    await transport.dispatch(slow)
    await settled()
    await time.advance(3000)
    assert.deepEqual(
      beats.map((beat) => [beat.stepId, beat.at]),
      [1000, 2000, 3000, 4000].map((at) => [slow.stepId, at])
    )
    await transport.close()
    assert.equal(time.pending, 0)
    assert.isFalse(transport.isRunning(slow.stepId))
  })

  test('an engine with less patience makes steps beat more often, never less', async ({
    assert,
  }) => {
    const { transport, time, listen } = setup({ heartbeatIntervalMs: 1000 })
    listen()
    const beats: Heartbeat[] = []
    transport.onHeartbeat((beat) => Promise.resolve(void beats.push(beat)))
    transport.handle('slow', () => new Promise(() => {}))
    transport.beatEvery(250)
    transport.beatEvery(9000)
    await transport.dispatch(task('slow'))
    await settled()
    await time.advance(500)
    assert.deepEqual(
      beats.map((beat) => beat.at),
      [1000, 1250, 1500]
    )
    await transport.close()
  })

  test('beats of others reach every engine', async ({ assert }) => {
    const { transport } = setup()
    const beats: Heartbeat[] = []
    transport.onHeartbeat((beat) => Promise.resolve(void beats.push(beat)))
    transport.onHeartbeat((beat) => Promise.resolve(void beats.push(beat)))
    await transport.heartbeat({ runId: 'r', seq: 0, group: 'g' })
    assert.lengthOf(beats, 2)
  })

  test("a handler starts on a later tick and outside of the caller's async context", async ({
    assert,
  }) => {
    const ambient = new AsyncLocalStorage<string>()
    const { transport, listen, results } = setup()
    listen()
    let started = false
    transport.handle('neutral', () => {
      started = true
      return ambient.getStore() ?? 'nothing'
    })
    await ambient.run('a workflow body', () => transport.dispatch(task('neutral')))
    await Promise.resolve()
    assert.isFalse(started)
    await settled()
    assert.equal(results[0].output, 'nothing')
  })

  test('an unknown name fails for good', async ({ assert }) => {
    const { transport, listen, results } = setup()
    listen()
    await transport.dispatch(task('ghost'))
    await settled()
    assert.deepInclude(results[0].error as object, {
      message: 'no handler for ghost',
      retryable: false,
    })
  })

  test('a handler without partition serves the partitions that have none', async ({ assert }) => {
    const { transport, listen, results } = setup()
    listen()
    transport.handle('pooled', () => 'bare')
    transport.handle('pooled', () => 'acme', 'acme')
    await transport.dispatch(task('pooled', { group: 'pooled@acme' }))
    await transport.dispatch(task('pooled', { group: 'pooled@other' }))
    await settled()
    assert.deepEqual(
      results.map((result) => result.output),
      ['acme', 'bare']
    )
  })

  test('the test hook holds, doubles and reorders results', async ({ assert }) => {
    const held: (() => void)[] = []
    const { transport, listen, results } = setup({
      intercept: (result, deliver) => {
        if (result.output === 'lost') throw new Error('dropped')
        held.unshift(() => deliver(result))
      },
    })
    listen()
    transport.handle('name', (input) => input)
    for (const input of ['a', 'b', 'lost']) await transport.dispatch(task('name', { input }))
    await settled()
    assert.lengthOf(results, 0)
    for (const release of held) release()
    held[0]()
    await settled()
    assert.deepEqual(
      results.map((result) => result.output),
      ['b', 'a', 'b']
    )
  })

  test('step events go to the first who asked, and again after a failure', async ({ assert }) => {
    const { transport, time, errors } = setup()
    const event: WorkflowStepEvent = {
      runId: 'r',
      seq: 0,
      name: 'n',
      phase: 'running',
      startedAt: 1,
    }
    await transport.dispatchStepEvent(event)
    const heard: string[] = []
    transport.onStepEvent(() => {
      heard.push('first')
      return heard.length === 1 ? Promise.reject(new Error('once')) : Promise.resolve()
    })
    transport.onStepEvent(() => Promise.resolve(void heard.push('second')))
    await transport.dispatchStepEvent(event)
    await settled()
    await time.advance(200)
    assert.deepEqual(heard.slice(-2), ['first', 'first'])
    assert.lengthOf(errors, 1)
  })

  test('control messages reach every subscriber, the publisher included', async ({ assert }) => {
    const { transport } = setup()
    const heard: ControlMessage[] = []
    transport.onControl((message) => heard.push(message))
    transport.onControl((message) => heard.push(message))
    await transport.publishControl({ from: 'i', kind: 'cancel', runId: 'r' })
    assert.lengthOf(heard, 2)
  })

  test('deferred, it holds results for an engine that has not started', async ({ assert }) => {
    const { transport, listen, results } = setup()
    transport.deferConsumers()
    listen()
    const one = task()
    await transport.dispatch(one)
    await settled()
    assert.lengthOf(results, 0)
    assert.isTrue(transport.isRunning(one.stepId))
    transport.startConsumers()
    await settled()
    assert.lengthOf(results, 1)
  })

  test('nothing that fails is left unhandled', async ({ assert }) => {
    const { transport, errors } = setup()
    transport.onResult(() => {
      throw new Error('sync result')
    })
    transport.onHeartbeat(() => {
      throw new Error('sync beat')
    })
    await transport.dispatch(task())
    await settled()
    assert.sameMembers(
      errors.map((error) => (error as Error).message),
      ['sync result', 'sync beat']
    )
    await transport.close()
  })
})
