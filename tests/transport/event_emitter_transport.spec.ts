import { EventEmitter } from 'node:events'
import { test } from '@japa/runner'
import {
  EventEmitterTransport,
  type EventEmitterTransportConfig,
} from '../../src/transport/event_emitter/event_emitter_transport.ts'
import type { ControlMessage, Heartbeat, RemoteTask, StepResult } from '../../src/wire/messages.ts'
import { ManualTime, settled } from './manual_time.ts'

let count = 0
const task = (name = 'work', more: Partial<RemoteTask> = {}): RemoteTask => {
  const seq = count++
  return { runId: 'r', seq, name, stepId: `r:${seq}`, group: name, input: seq, attempt: 1, ...more }
}

/** A bus with as many transports as a test opens on it. */
function setup() {
  const emitter = new EventEmitter()
  const time = new ManualTime()
  const errors: unknown[] = []
  const open = (config: EventEmitterTransportConfig = {}) =>
    new EventEmitterTransport({
      emitter,
      clock: time.clock,
      timers: time,
      onError: (error) => errors.push(error),
      ...config,
    })
  return { emitter, time, errors, open }
}

function listen(transport: EventEmitterTransport) {
  const results: StepResult[] = []
  const beats: Heartbeat[] = []
  transport.onResult((result) => Promise.resolve(void results.push(result)))
  transport.onHeartbeat((beat) => Promise.resolve(void beats.push(beat)))
  return { results, beats }
}

test.group('EventEmitterTransport | events', () => {
  test('listeners are attached when they are needed, under the namespace known then', ({
    assert,
  }) => {
    const { emitter, open } = setup()
    const transport = open()
    assert.deepEqual(emitter.eventNames(), [])
    transport.useNamespace('acme')
    transport.handle('work', () => 1)
    assert.deepEqual(emitter.eventNames(), ['durable.task:acme'])
    transport.handle('other', () => 1)
    assert.equal(emitter.listenerCount('durable.task:acme'), 1)
    listen(transport)
    transport.onControl(() => {})
    assert.sameMembers(emitter.eventNames(), [
      'durable.task:acme',
      'durable.result:acme',
      'durable.heartbeat:acme',
      'durable.control:acme',
    ])
    transport.useNamespace('default')
    assert.sameMembers(emitter.eventNames(), [
      'durable.task',
      'durable.result',
      'durable.heartbeat',
      'durable.control',
    ])
  })

  test('a namespace given to the constructor wins', ({ assert }) => {
    const { emitter, open } = setup()
    const transport = open({ namespace: 'acme' })
    transport.useNamespace('other')
    transport.handle('work', () => 1)
    assert.deepEqual(emitter.eventNames(), ['durable.task:acme'])
  })

  test('the listener cap of the bus is lifted', ({ assert }) => {
    const { emitter, open } = setup()
    open()
    assert.equal(emitter.getMaxListeners(), 0)
  })

  test('what crosses the bus is the wire shape', async ({ assert }) => {
    const { emitter, open } = setup()
    const transport = open()
    const seen: Record<string, unknown> = {}
    for (const what of ['task', 'result', 'heartbeat']) {
      emitter.on(`durable.${what}`, (message) => (seen[what] = message))
    }
    transport.handle('work', () => 'done')
    const sent = task()
    await transport.dispatch(sent)
    await settled()
    assert.deepEqual(seen.task, sent)
    assert.notStrictEqual(seen.task, sent)
    assert.deepInclude(seen.result as object, { stepId: sent.stepId, output: 'done' })
    assert.deepInclude(seen.heartbeat as object, { stepId: sent.stepId, group: 'work' })
  })

  test('a task that another listener puts on the bus is served', async ({ assert }) => {
    const { emitter, open, errors } = setup()
    const transport = open()
    const { results } = listen(transport)
    transport.handle('work', (input) => input)
    emitter.emit('durable.task', task('work', { input: 'foreign' }))
    emitter.emit('durable.task', task('unknown'))
    emitter.emit('durable.task', { name: 'work' })
    emitter.emit('durable.task')
    await settled()
    assert.deepEqual(
      results.map((result) => result.output),
      ['foreign']
    )
    assert.deepEqual(
      errors.map((error) => (error as { code: string }).code),
      ['wire_format', 'wire_format']
    )
  })
})

test.group('EventEmitterTransport | shared bus', () => {
  test('an engine and a worker are two transports of one bus', async ({ assert }) => {
    const { open } = setup()
    const [engine, worker] = [open(), open()]
    const { results, beats } = listen(engine)
    let finish: () => void = () => {}
    worker.handle('work', () => new Promise<void>((resolve) => (finish = resolve)))
    const sent = task()
    await engine.dispatch(sent)
    assert.isTrue(engine.isRunning(sent.stepId))
    await settled()
    assert.lengthOf(beats, 1)
    assert.isTrue(engine.isRunning(sent.stepId))
    assert.isTrue(worker.isRunning(sent.stepId))
    finish()
    await settled()
    assert.lengthOf(results, 1)
    assert.isFalse(engine.isRunning(sent.stepId))
  })

  test('one of the workers of a name takes a task, the one of its partition first', async ({
    assert,
  }) => {
    const { open } = setup()
    const engine = open()
    listen(engine)
    const served: string[] = []
    open().handle('work', () => served.push('bare'))
    open().handle('work', () => served.push('acme'), 'acme')
    open().handle('work', () => served.push('also acme'), 'acme')
    await engine.dispatch(task('work', { group: 'work@acme' }))
    await engine.dispatch(task('work', { group: 'work@other' }))
    await engine.dispatch(task('work'))
    await settled()
    assert.deepEqual(served, ['acme', 'bare', 'bare'])
  })

  test('a parked worker takes what no running one serves', async ({ assert }) => {
    const { open } = setup()
    const [engine, parked, running] = [open(), open(), open()]
    const { results } = listen(engine)
    parked.deferConsumers()
    parked.handle('work', () => 'parked')
    parked.handle('alone', () => 'parked')
    running.handle('work', () => 'running')
    const alone = task('alone')
    await engine.dispatch(task('work'))
    await engine.dispatch(alone)
    await settled()
    assert.deepEqual(
      results.map((result) => result.output),
      ['running']
    )
    assert.isTrue(engine.isRunning(alone.stepId))
    parked.startConsumers()
    await settled()
    assert.equal(results[1].output, 'parked')
  })

  test('a name nobody serves stays silent', async ({ assert }) => {
    const { open } = setup()
    const engine = open()
    const { results } = listen(engine)
    engine.handle('work', () => 1)
    const ghost = task('ghost')
    await engine.dispatch(ghost)
    await settled()
    assert.lengthOf(results, 0)
    assert.isFalse(engine.isRunning(ghost.stepId))
  })

  test('a name nobody serves is told, unless a foreign listener may own it', async ({ assert }) => {
    const { emitter, open } = setup()
    const [engine, worker] = [open(), open()]
    const told: string[] = []
    engine.onUnserved(({ name }) => void told.push(name))
    await engine.dispatch(task('early'))
    engine.handle('local', () => 1)
    worker.handle('work', () => 1)
    worker.deferConsumers()
    worker.handle('parked', () => 1)
    for (const name of ['ghost', 'local', 'work', 'parked', 'ghost']) {
      await engine.dispatch(task(name))
    }
    assert.deepEqual(told, ['early', 'ghost', 'ghost'])
    emitter.on('durable.task', () => {})
    await engine.dispatch(task('foreign'))
    assert.lengthOf(told, 3)
    await settled()
  })

  test('closing one leaves the others and foreign listeners alone', async ({ assert }) => {
    const { emitter, open } = setup()
    const foreign = () => {}
    emitter.on('durable.result', foreign)
    const [engine, worker] = [open(), open()]
    const { results } = listen(engine)
    worker.handle('work', () => 1)
    const other = open()
    listen(other)
    other.handle('work', () => 2)
    await other.close()
    await other.close()
    assert.equal(emitter.listenerCount('durable.task'), 1)
    assert.include(emitter.listeners('durable.result'), foreign)
    await engine.dispatch(task())
    await settled()
    assert.equal(results[0].output, 1)
    other.handle('work', () => 3)
    other.onControl(() => {})
    assert.equal(emitter.listenerCount('durable.task'), 1)
    await assert.rejects(() => other.dispatch(task()), /is closed/)
  })

  test('what a closed transport held counts as gone', async ({ assert }) => {
    const { open, time } = setup()
    const [engine, worker] = [open(), open()]
    worker.handle('work', () => new Promise(() => {}))
    engine.onResult(() => Promise.reject(new Error('never')))
    worker.handle('quick', () => 1)
    const [stuck, refused] = [task(), task('quick')]
    await engine.dispatch(stuck)
    await engine.dispatch(refused)
    await settled()
    assert.isTrue(worker.isRunning(stuck.stepId))
    assert.isTrue(worker.isRunning(refused.stepId))
    await worker.close()
    assert.isFalse(engine.isRunning(stuck.stepId))
    assert.isTrue(engine.isRunning(refused.stepId))
    await engine.close()
    assert.isFalse(engine.isRunning(refused.stepId))
    assert.equal(time.pending, 0)
  })
})

test.group('EventEmitterTransport | delivery', () => {
  test('a refused result comes again until it is taken', async ({ assert }) => {
    const { open, time, errors } = setup()
    const transport = open()
    transport.handle('work', () => 1)
    let deliveries = 0
    transport.onResult(() =>
      ++deliveries < 4 ? Promise.reject(new Error('store down')) : Promise.resolve()
    )
    await transport.dispatch(task())
    await settled()
    for (const expected of [100, 200, 400]) {
      const wait = time.untilNext!
      assert.isTrue(wait >= expected * 0.8 && wait <= expected * 1.2, `${wait} of ${expected}`)
      await time.advance(wait)
    }
    assert.equal(deliveries, 4)
    assert.lengthOf(errors, 3)
    assert.equal(time.pending, 0)
  })

  test('close ends the redelivery', async ({ assert }) => {
    const { open, time } = setup()
    const transport = open()
    transport.handle('work', () => 1)
    let deliveries = 0
    transport.onResult(() => {
      deliveries += 1
      return Promise.reject(new Error('store down'))
    })
    await transport.dispatch(task())
    await settled()
    await transport.close()
    await time.advance(60_000)
    assert.equal(deliveries, 1)
  })

  test('a refused heartbeat is only reported', async ({ assert }) => {
    const { open, time, errors } = setup()
    const transport = open()
    transport.handle('work', () => 1)
    transport.onResult(() => Promise.resolve())
    transport.onHeartbeat(() => Promise.reject(new Error('beat')))
    await transport.dispatch(task())
    await settled()
    assert.deepEqual(
      errors.map((error) => (error as Error).message),
      ['beat']
    )
    assert.equal(time.pending, 0)
  })

  test('errors go to the console unless told otherwise', async ({ assert, cleanup }) => {
    const print = console.error
    cleanup(() => void (console.error = print))
    const printed: unknown[] = []
    console.error = (error: unknown) => void printed.push(error)
    const transport = new EventEmitterTransport()
    cleanup(() => transport.close())
    transport.onHeartbeat(() => Promise.reject(new Error('beat')))
    await transport.heartbeat({ runId: 'r', seq: 0, group: 'g' })
    await settled()
    assert.lengthOf(printed, 1)
  })

  test('a foreign listener that throws makes dispatch reject, and breaks nothing else', async ({
    assert,
  }) => {
    const { emitter, open, errors } = setup()
    const transport = open()
    const { results } = listen(transport)
    transport.handle('work', () => 1)
    const angry = () => {
      throw new Error('foreign')
    }
    emitter.on('durable.task', angry)
    const rejection = await transport.dispatch(task()).catch((error: unknown) => error)
    assert.equal((rejection as { code: string }).code, 'transport_unavailable')
    assert.equal(((rejection as Error).cause as Error).message, 'foreign')
    await settled()
    assert.lengthOf(results, 0)

    emitter.off('durable.task', angry)
    emitter.on('durable.result', angry)
    await transport.dispatch(task())
    await settled()
    assert.lengthOf(results, 1)
    assert.lengthOf(errors, 1)
  })

  test('a running step beats by itself every 5 s', async ({ assert }) => {
    const { open, time } = setup()
    const transport = open()
    const { beats } = listen(transport)
    transport.handle('work', () => new Promise(() => {}))
    await transport.dispatch(task())
    await settled()
    await time.advance(15_000)
    assert.deepEqual(
      beats.map((beat) => beat.at),
      [1000, 6000, 11_000, 16_000]
    )
    await transport.close()
    assert.equal(time.pending, 0)
  })
})

test.group('EventEmitterTransport | control plane', () => {
  test('every transport of the bus hears what one of them publishes, stamped', async ({
    assert,
  }) => {
    const { open, errors } = setup()
    const [a, b] = [open({ instanceId: 'a' }), open({ instanceId: 'b' })]
    const heard: ControlMessage[] = []
    a.onControl(() => {
      throw new Error('listener')
    })
    a.onControl((message) => heard.push(message))
    b.onControl((message) => heard.push(message))
    await a.publishControl({ kind: 'enqueued', runId: 'r' })
    await b.publishControl({ from: 'engine', kind: 'cancel', runId: 'r' })
    assert.deepEqual(heard, [
      { from: 'a', kind: 'enqueued', runId: 'r' },
      { from: 'a', kind: 'enqueued', runId: 'r' },
      { from: 'engine', kind: 'cancel', runId: 'r' },
      { from: 'engine', kind: 'cancel', runId: 'r' },
    ])
    assert.lengthOf(errors, 2)
  })
})
