/*
 * The bridge to the diagnostics bus, the mark of foreign events, and the labels of work.
 */
import { test } from '@japa/runner'
import {
  asHeartbeat,
  attachDurableDiagnostics,
  type EngineEvent,
  type EngineListener,
  isRemoteEvent,
  WorkflowEngine,
  withScheduleOrigin,
} from '../../index.ts'
import { runTick } from '../../src/loop/tick.ts'
import { createTestEngine } from '../../src/testing/main.ts'
import { markRemote } from '../../src/wire/remote_events.ts'
import { bootApp } from '../adonis/app.ts'

const EMIT = Symbol.for('@agora/diagnostics:emit')
const SCHEDULE = Symbol.for('@agora/observability:schedule-origin')
const HEARTBEAT = Symbol.for('@agora/observability:heartbeat')
const slots = globalThis as Record<symbol, unknown>

const event: EngineEvent = { type: 'run.started', runId: 'r', at: new Date(0) }

type Emitted = [library: string, name: string, payload: EngineEvent & { parentRunId?: string }]

function fail(error: Error): never {
  throw error
}

function catching(fn: () => unknown): unknown {
  try {
    return fn()
  } catch (error) {
    return error
  }
}

test.group('Diagnostics', (group) => {
  group.each.teardown(() => {
    for (const slot of [EMIT, SCHEDULE, HEARTBEAT]) delete slots[slot]
  })

  /** A bus that keeps what it is told. */
  function bus(): Emitted[] {
    const emitted: Emitted[] = []
    slots[EMIT] = (...report: Emitted) => void emitted.push(report)
    return emitted
  }

  test('every event reaches a bus that is loaded by then, until the bridge is detached', async ({
    assert,
  }) => {
    const { engine, run } = createTestEngine()
    const detach = attachDurableDiagnostics(engine)
    engine.register('child', '1', async () => 1)
    engine.register('order', '1', (ctx) => ctx.child('child', null))
    await run('child', null, { runId: 'before' })
    const emitted = bus()
    await run('order', null, { runId: 'r' })
    detach()
    await run('child', null, { runId: 'after' })
    const ends = emitted.filter(([, name]) => name !== 'run.suspended')
    assert.deepEqual(
      ends.map(([library, name, { runId, parentRunId }]) => [library, name, runId, parentRunId]),
      [
        ['durable', 'run.started', 'r', undefined],
        ['durable', 'run.started', 'r.child.0', 'r'],
        ['durable', 'run.completed', 'r.child.0', 'r'],
        ['durable', 'run.completed', 'r', undefined],
      ]
    )
  })

  test('events of other instances only when they are asked for', ({ assert }) => {
    let tell: EngineListener = () => {}
    const engine = {
      subscribe(listener: EngineListener) {
        tell = listener
        return () => {}
      },
    }
    const emitted = bus()
    attachDurableDiagnostics(engine)
    tell(markRemote({ ...event }))
    assert.lengthOf(emitted, 0)
    attachDurableDiagnostics(engine, { includeRemote: true })
    tell(markRemote({ ...event }))
    tell(event)
    assert.lengthOf(emitted, 2)
  })

  test('a bus that throws disturbs no run', async ({ assert }) => {
    const { engine, run } = createTestEngine()
    attachDurableDiagnostics(engine)
    slots[EMIT] = () => fail(new Error('the bus is full'))
    engine.register('order', '1', async () => 1)
    const { status } = await run('order')
    assert.equal(status, 'completed')
  })

  test('the provider attaches it, once, until the application is down', async ({ assert }) => {
    const app = await bootApp()
    const engine = await app.container.make(WorkflowEngine)
    engine.register('order', '1', async () => 1)
    const emitted = bus()
    await engine.start('order', null, 'r')
    await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    const names = emitted.map(([, name]) => name)
    assert.deepEqual(names, ['run.started', 'run.completed'])
    await engine.start('order', null, 'late', { startAt: Date.now() + 60_000 })
    await app.terminate()
    await engine.cancel('late')
    assert.lengthOf(emitted, 2)
  })

  test('a foreign event is known by a mark that no copy and no text has', ({ assert }) => {
    const foreign = markRemote({ ...event })
    assert.isTrue(isRemoteEvent(foreign))
    assert.isFalse(isRemoteEvent(event))
    assert.isFalse(isRemoteEvent({ ...foreign }))
    assert.equal(JSON.stringify(foreign), JSON.stringify(event))
    assert.deepEqual(Object.keys(foreign), Object.keys(event))
  })

  for (const [name, label, slot] of [
    ['withScheduleOrigin', withScheduleOrigin, SCHEDULE],
    ['asHeartbeat', asHeartbeat, HEARTBEAT],
  ] as const) {
    test(`${name} runs the work inside what a tool left there; without one it just runs it`, ({
      assert,
    }) => {
      const plain = label(() => 1)
      assert.equal(plain, 1)
      const failure = new Error('mine')
      assert.strictEqual(
        catching(() => label(() => fail(failure))),
        failure
      )
      const calls: string[] = []
      slots[slot] = (fn: () => unknown) => {
        calls.push('begins')
        const answer = fn()
        calls.push('ends')
        return answer
      }
      const inside = label(() => calls.push('works'))
      assert.equal(inside, 2)
      assert.deepEqual(calls, ['begins', 'works', 'ends'])
    })
  }

  test('what schedules start is labelled', async ({ assert }) => {
    const { engine } = createTestEngine()
    let inside = false
    slots[SCHEDULE] = async (fn: () => Promise<unknown>) => {
      inside = true
      const answer = await fn()
      inside = false
      return answer
    }
    const seen: boolean[] = []
    const fire = engine.fireSchedules.bind(engine)
    engine.fireSchedules = async (options) => {
      seen.push(inside)
      return fire(options)
    }
    await runTick(engine)
    assert.deepEqual(seen, [true])
  })
})
