import { test } from '@japa/runner'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import {
  runWorkerLoop,
  type WorkerLoopEngine,
  type WorkerLoopOptions,
} from '../../src/loop/worker_loop.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'

/** An engine that only notes what it is asked. */
function fakeEngine(overrides: Partial<WorkerLoopEngine> = {}) {
  const calls: string[] = []
  const note =
    <T>(name: string, answer: T) =>
    () => {
      calls.push(name)
      return answer
    }
  const engine: WorkerLoopEngine = {
    startConsumers: note('startConsumers', undefined),
    runPending: note('runPending', Promise.resolve([])),
    recoverIncomplete: note('recoverIncomplete', Promise.resolve([])),
    resumeDueTimers: note('resumeDueTimers', Promise.resolve([])),
    sweepTimeouts: note('sweepTimeouts', Promise.resolve()),
    fireSchedules: async () => ({ started: [], failures: [] }),
    sweepRetention: async () => 0,
    sweepStalled: async () => [],
    beginDrain: note('beginDrain', undefined),
    drain: note('drain', Promise.resolve()),
    ...overrides,
  }
  return { engine, calls }
}

function recordingLogger() {
  const lines: string[] = []
  return {
    lines,
    info: (message: string) => void lines.push(`info ${message}`),
    error: (message: string) => void lines.push(`error ${message}`),
  }
}

/** A pause that the test ends. */
function manualSleep() {
  const asleep: (() => void)[] = []
  let noted = deferred<void>()
  return {
    sleep: () =>
      new Promise<void>((resolve) => {
        asleep.push(resolve)
        noted.resolve()
      }),
    /** Resolves when the loop sleeps. */
    async untilAsleep() {
      if (asleep.length === 0) await noted.promise
    },
    wake() {
      noted = deferred<void>()
      asleep.splice(0).forEach((resolve) => resolve())
    },
  }
}

function startLoop(engine: WorkerLoopEngine, options: Partial<WorkerLoopOptions> = {}) {
  const stop = deferred<void>()
  const logger = recordingLogger()
  const pause = manualSleep()
  const done = runWorkerLoop(engine, {
    intervalMs: 10,
    stopSignal: stop.promise,
    logger,
    sleep: pause.sleep,
    ...options,
  })
  return { done, logger, pause, stop: () => stop.resolve() }
}

test.group('Worker loop', () => {
  test('starts consumers, ticks until it is stopped, then drains once', async ({ assert }) => {
    const { engine, calls } = fakeEngine()
    const loop = startLoop(engine)
    await loop.pause.untilAsleep()
    loop.pause.wake()
    await loop.pause.untilAsleep()
    loop.stop()
    assert.equal(await loop.done, 2)
    const tick = ['runPending', 'recoverIncomplete', 'resumeDueTimers', 'sweepTimeouts']
    assert.deepEqual(calls, ['startConsumers', ...tick, ...tick, 'beginDrain', 'drain'])
    assert.deepEqual(loop.logger.lines, [])
  })

  test('drains with the budget it was given, 10 s by default', async ({ assert }) => {
    const budgets: (number | undefined)[] = []
    const { engine } = fakeEngine({ drain: async (ms) => void budgets.push(ms) })
    for (const drainTimeoutMs of [undefined, 250]) {
      const loop = startLoop(engine, { drainTimeoutMs })
      loop.stop()
      await loop.done
    }
    assert.deepEqual(budgets, [10_000, 250])
  })

  test('a stop signal that rejects is a stop', async ({ assert }) => {
    const { engine } = fakeEngine()
    const loop = startLoop(engine, { stopSignal: Promise.reject(new Error('gone')) })
    assert.equal(await loop.done, 1)
  })

  test('a stop ends the pause between two ticks at once', async ({ assert }) => {
    const { engine } = fakeEngine()
    const loop = startLoop(engine, { intervalMs: 3_600_000, sleep: undefined })
    await new Promise((resolve) => setImmediate(resolve))
    loop.stop()
    assert.equal(await loop.done, 1)
  })

  test('says what was moved, and nothing when nothing was', async ({ assert }) => {
    const moved = (count: number) =>
      Array.from({ length: count }, () => ({ runId: 'r', status: 'completed' as const }))
    const { engine } = fakeEngine({
      runPending: async () => moved(3),
      resumeDueTimers: async () => moved(1),
    })
    const loop = startLoop(engine)
    await loop.pause.untilAsleep()
    loop.stop()
    await loop.done
    assert.deepEqual(loop.logger.lines, [
      'info durable: executed pending runs (3)',
      'info durable: resumed due run (1)',
    ])
  })

  test('a phase that fails is logged and tried again by the next tick', async ({ assert }) => {
    let attempts = 0
    const { engine } = fakeEngine({
      recoverIncomplete: async () => {
        attempts++
        throw new Error('database is down')
      },
    })
    const loop = startLoop(engine)
    await loop.pause.untilAsleep()
    loop.pause.wake()
    await loop.pause.untilAsleep()
    loop.stop()
    await loop.done
    const line = 'error durable: recoverIncomplete failed: database is down'
    assert.equal(attempts, 2)
    assert.deepEqual(loop.logger.lines, [line, line])
  })

  test('waits at its end for a pass that still writes', async ({ assert }) => {
    const pass = deferred<never[]>()
    const { engine } = fakeEngine({ recoverIncomplete: () => pass.promise })
    const loop = startLoop(engine)
    await loop.pause.untilAsleep()
    let over = false
    void loop.done.then(() => (over = true))
    loop.stop()
    await new Promise((resolve) => setImmediate(resolve))
    assert.isFalse(over)
    pass.resolve([])
    assert.equal(await loop.done, 1)
  })

  test('a phase that throws at once does not end the loop', async ({ assert }) => {
    const { engine } = fakeEngine({
      runPending: () => {
        throw new Error('no')
      },
    })
    const loop = startLoop(engine)
    await loop.pause.untilAsleep()
    loop.stop()
    assert.equal(await loop.done, 1)
    assert.deepEqual(loop.logger.lines, ['error durable: runPending failed: no'])
  })

  test('passes that do not end pile up to a bound', async ({ assert }) => {
    const asked = { stuck: 0, free: 0 }
    const { engine } = fakeEngine({
      runPending: () => {
        asked.stuck++
        return new Promise(() => {})
      },
      resumeDueTimers: async () => {
        asked.free++
        return []
      },
    })
    const loop = startLoop(engine, { drainTimeoutMs: 1 })
    for (let tick = 0; tick < 400; tick++) {
      await loop.pause.untilAsleep()
      loop.pause.wake()
    }
    loop.stop()
    await loop.done
    assert.equal(asked.stuck, 256)
    assert.isAtLeast(asked.free, 400)
  })

  test('gives up at its end on a pass that never comes back', async ({ assert }) => {
    const { engine } = fakeEngine({ recoverIncomplete: () => new Promise(() => {}) })
    const loop = startLoop(engine, { drainTimeoutMs: 20 })
    loop.stop()
    assert.equal(await loop.done, 1)
  })
})

test.group('Worker loop | over an engine', () => {
  function createEngine() {
    let now = 1_000_000
    const store = new InMemoryStateStore()
    const transport = new InMemoryTransport()
    // Nothing executes unless the loop makes it.
    const runDispatcher = { dispatch: () => {} }
    const engine = new WorkflowEngine({ store, transport, runDispatcher, clock: () => now })
    return { engine, store, advance: (ms: number) => void (now += ms) }
  }

  test('a turn that lasts holds up neither other pending runs nor due timers', async ({
    assert,
  }) => {
    const { engine, advance } = createEngine()
    const slow = deferred<void>()
    const begun = deferred<void>()
    engine.register('slow', '1', async (ctx) =>
      ctx.localStep('wait', async () => {
        begun.resolve()
        await slow.promise
        return 'slow'
      })
    )
    engine.register('quick', '1', async () => 'quick')
    engine.register('sleepy', '1', async (ctx) => {
      await ctx.sleep('1h')
      return 'awake'
    })
    await engine.start('slow', null, 'slow')
    await engine.start('sleepy', null, 'sleepy')
    const loop = startLoop(engine)
    await begun.promise
    await engine.waitForRun('sleepy', { timeoutMs: 5000 })

    await engine.start('quick', null, 'quick')
    advance(3_600_001)
    await loop.pause.untilAsleep()
    loop.pause.wake()
    const quick = await engine.waitForRun('quick', { terminal: true, timeoutMs: 5000 })
    const sleepy = await engine.waitForRun('sleepy', { terminal: true, timeoutMs: 5000 })
    assert.equal(quick.output, 'quick')
    assert.equal(sleepy.output, 'awake')
    assert.equal((await engine.getRun('slow'))!.status, 'running')

    slow.resolve()
    loop.stop()
    await loop.done
    assert.equal((await engine.getRun('slow'))!.output, 'slow')
  })

  test('takes over a run that another process left running', async ({ assert }) => {
    const { engine, store } = createEngine()
    engine.register('plain', '1', async () => 'done')
    await store.createRun({
      id: 'lost',
      workflow: 'plain',
      workflowVersion: '1',
      status: 'running',
      namespace: 'default',
      input: null,
      lockedBy: 'gone',
      lockedUntil: 10,
      turns: 1,
      createdAt: new Date(0),
      updatedAt: new Date(0),
    })
    const loop = startLoop(engine)
    // Found by one tick and set back to pending, executed by that one or the next.
    for (let tick = 0; tick < 3; tick++) {
      await loop.pause.untilAsleep()
      await new Promise((resolve) => setImmediate(resolve))
      loop.pause.wake()
    }
    const result = await engine.waitForRun('lost', { terminal: true, timeoutMs: 5000 })
    assert.equal(result.output, 'done')
    loop.stop()
    await loop.done
  })

  test('finishes at its end what is in flight and picks up nothing more', async ({ assert }) => {
    const { engine } = createEngine()
    const step = deferred<void>()
    const begun = deferred<void>()
    engine.register('flow', '1', async (ctx) =>
      ctx.localStep('wait', async () => {
        begun.resolve()
        await step.promise
      })
    )
    await engine.start('flow', null, 'first')
    const loop = startLoop(engine)
    await begun.promise
    await loop.pause.untilAsleep()
    loop.stop()
    while (!engine.isDraining()) await new Promise((resolve) => setImmediate(resolve))
    await engine.start('flow', null, 'second')
    step.resolve()
    await loop.done
    assert.equal((await engine.getRun('first'))!.status, 'completed')
    assert.equal((await engine.getRun('second'))!.status, 'pending')
  })
})
