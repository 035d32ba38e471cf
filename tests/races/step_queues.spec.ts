/*
 * Flow-control queues: never more steps of a queue out at once than it allows, the rightful one next, and
 * no slot kept by a step that is over, whoever hears of its end and whatever dies.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { InMemoryAdmissionBackend } from '../../src/flow/memory_admission.ts'
import type { QueueConfig } from '../../src/flow/port.ts'
import type { StepDispatchOpts } from '../../src/types/step.ts'
import { type EngineOptions, storesUnderTest, useWorld } from '../helpers/engines.ts'

const LEASE_MS = 30_000
const RETRY_MS = 1_000

type Input = { opts?: StepDispatchOpts }

/** One step through the queue `q`, and what the run was started with. */
function register(engine: WorkflowEngine, config: Omit<QueueConfig, 'name'> = { concurrency: 1 }) {
  engine.registerQueue({ name: 'q', ...config })
  engine.register('w', '1', (ctx, { opts }: Input) =>
    ctx.step('call', ctx.runId, { queue: 'q', ...opts })
  )
}

for (const kind of await storesUnderTest()) {
  test.group(`Step queues | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    function engineOf(config?: Omit<QueueConfig, 'name'>, options: EngineOptions = {}) {
      const engine = world.engine({ transport: 'held', leaseMs: LEASE_MS, ...options })
      register(engine, config)
      return engine
    }

    async function start(engine: WorkflowEngine, runId: string, opts?: StepDispatchOpts) {
      await engine.start('w', { opts }, runId)
      await world.parked(runId)
    }

    const out = () => world.held.sent.map(({ input }) => input)

    async function answer(runId: string) {
      await world.held.complete(`${runId}:0`, 'ok')
      await world.quiet()
    }

    test('a denied step has no row and is due again; the end of the holder wakes it at once', async ({
      assert,
    }) => {
      const engine = engineOf()
      await start(engine, 'a')
      await start(engine, 'b')
      assert.deepEqual(out(), ['a'])
      assert.isEmpty(await world.rows('b'))
      const denied = await world.run('b')
      assert.equal(denied.wakeAt, world.time.now + RETRY_MS)
      await answer('a')
      assert.deepEqual(out(), ['a', 'b'])
      await answer('b')
      assert.equal(await world.status('b'), 'completed')
    })

    test('its wake is durable: a timer pass asks again when nobody heard of the slot', async ({
      assert,
    }) => {
      const admission = new InMemoryAdmissionBackend({ clock: world.time.clock })
      admission.onFreed = () => () => {}
      const engine = engineOf({ concurrency: 1 }, { admission })
      await start(engine, 'a')
      await start(engine, 'b')
      await answer('a')
      await world.time.advance(RETRY_MS - 1)
      await engine.resumeDueTimers()
      assert.deepEqual(out(), ['a'])
      await world.time.advance(1)
      await engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(out(), ['a', 'b'])
    })

    test('a freed slot wakes one run, the rightful one', async ({ assert }) => {
      const engine = engineOf()
      await start(engine, 'holder')
      for (const id of ['a', 'b', 'c']) await start(engine, id)
      await start(engine, 'urgent', { priority: 5 })
      const turns = async (id: string) => {
        const run = await world.run(id)
        return run.turns
      }
      const before = await Promise.all(['a', 'b', 'c'].map(turns))
      await answer('holder')
      assert.deepEqual(out(), ['holder', 'urgent'])
      assert.deepEqual(await Promise.all(['a', 'b', 'c'].map(turns)), before)
      for (const id of ['urgent', 'a', 'b', 'c']) await answer(id)
      assert.deepEqual(out(), ['holder', 'urgent', 'a', 'b', 'c'])
    })

    test('a key is the run unless the call names one', async ({ assert }) => {
      const engine = engineOf({ concurrency: 1, fairness: 'key' })
      await start(engine, 'x1', { fairnessKey: 'x' })
      await start(engine, 'x2', { fairnessKey: 'x' })
      await start(engine, 'y1', { fairnessKey: 'y' })
      await start(engine, 'z')
      for (const id of ['x1', 'y1', 'z', 'x2']) await answer(id)
      assert.deepEqual(out(), ['x1', 'y1', 'z', 'x2'])
    })

    test('a rate: so many in a window, the others when it ends', async ({ assert }) => {
      const engine = engineOf({ rateLimit: { limit: 2, periodMs: 60_000 } })
      for (const id of ['a', 'b', 'c']) await start(engine, id)
      assert.deepEqual(out(), ['a', 'b'])
      const { wakeAt } = await world.run('c')
      assert.equal(wakeAt, world.time.now + 60_000)
      await answer('a')
      await engine.resume('c')
      assert.lengthOf(out(), 2)
      await world.time.advance(60_000)
      await engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(out(), ['a', 'b', 'c'])
    })

    test('a queue that nobody registered is no gate', async ({ assert }) => {
      const engine = engineOf()
      await start(engine, 'a', { queue: 'unknown' })
      await start(engine, 'b', { queue: 'unknown' })
      assert.deepEqual(out(), ['a', 'b'])
    })

    test('a failed attempt gives its slot back; the retry waits in line', async ({ assert }) => {
      const engine = engineOf()
      await start(engine, 'a', { retries: 2 })
      await start(engine, 'b')
      await world.held.fail('a:0', 'no')
      await world.quiet()
      assert.deepEqual(out(), ['a', 'b'])
      const [row] = await world.rows('a')
      assert.deepEqual([row.status, row.attempts], ['failed', 1])
      await answer('b')
      assert.deepEqual(out(), ['a', 'b', 'a'])
      await answer('a')
      assert.equal(await world.status('a'), 'completed')
    })

    test('a failure of an earlier attempt that comes again frees nothing', async ({ assert }) => {
      const engine = engineOf()
      await start(engine, 'a', { retries: 3 })
      const first = await world.held.task('call', 1)
      const failure = { ...first, status: 'failed' as const, error: { message: 'no' } }
      await world.held.deliver(failure)
      await world.quiet()
      assert.deepEqual(out(), ['a', 'a'])
      await start(engine, 'b')
      await world.held.deliver(failure)
      await world.quiet()
      assert.deepEqual(out(), ['a', 'a'])
    })

    test('a dispatch that nobody took gives its slot back', async ({ assert }) => {
      const engine = engineOf()
      world.held.refuse = new Error('no broker')
      await engine.start('w', {}, 'a')
      await world.ended('a')
      world.held.refuse = undefined
      await start(engine, 'b')
      assert.deepEqual(out(), ['b'])
    }).tags(['@control-51'])

    test('a cancelled run frees the slot of its step, and leaves the line', async ({ assert }) => {
      const engine = engineOf()
      await start(engine, 'a')
      await start(engine, 'b', { priority: 9 })
      await start(engine, 'c')
      await engine.cancel('b')
      await engine.cancel('a')
      await world.quiet()
      assert.deepEqual(out(), ['a', 'c'])
      assert.equal(await world.status('b'), 'cancelled')
      // What the cancelled step comes to changes nothing.
      await world.held.complete('a:0', 'late')
      await start(engine, 'd')
      assert.deepEqual(out(), ['a', 'c'])
    }).tags(['@race-13', '@control-10'])

    test('a denied run that is cancelled with its undos ends', async ({ assert }) => {
      const engine = engineOf()
      await start(engine, 'a')
      await start(engine, 'b')
      await engine.cancel('b', { compensate: true })
      await world.ended('b')
      await answer('a')
      assert.deepEqual(out(), ['a'])
      assert.equal(await world.status('b'), 'cancelled')
    })

    test('a result that another process takes frees the slot at the next pass, if somebody waits', async ({
      assert,
    }) => {
      const engine = engineOf()
      await start(engine, 'a')
      const other = engineOf()
      await world.held.complete('a:0', 'ok', world.port(other))
      await world.ended('a')
      await start(engine, 'b')
      assert.deepEqual(out(), ['a'])
      await engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(out(), ['a', 'b'])
    })

    test('a run cancelled by another process frees it likewise', async ({ assert }) => {
      const engine = engineOf()
      await start(engine, 'a')
      await start(engine, 'b')
      await engineOf().cancel('a')
      await engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(out(), ['a', 'b'])
    })

    test('a step of a run that is over holds its slot until it is silent for two leases', async ({
      assert,
    }) => {
      const engine = engineOf()
      engine.register('race', '1', (ctx) =>
        Promise.race([ctx.step('call', ctx.runId, { queue: 'q' }), ctx.localStep('short', () => 1)])
      )
      await engine.start('race', null, 'a')
      await world.ended('a')
      await start(engine, 'b')
      await engine.resumeDueTimers()
      assert.deepEqual(out(), ['a'])
      await world.time.advance(2 * LEASE_MS)
      await engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(out(), ['a', 'b'])
    })

    if (kind.complete) {
      test('a process dies between admission and dispatch: the step is sent, once, by another', async ({
        assert,
      }) => {
        // A backend that outlives the process, as one over the network does.
        const admission = new InMemoryAdmissionBackend({ clock: world.time.clock })
        const engine = engineOf(undefined, { admission })
        const gate = world.gate(engine)
        gate.around('commitTurn', (proceed) => {
          gate.crash()
          return proceed()
        })
        await engine.start('w', {}, 'a')
        await world.quiet()
        assert.isEmpty(out())
        assert.isEmpty(await world.rows('a'))
        const next = engineOf(undefined, { admission })
        await world.time.advance(LEASE_MS)
        await next.recoverIncomplete()
        await world.parked('a')
        assert.deepEqual(out(), ['a'])
        await start(next, 'b')
        assert.deepEqual(out(), ['a'])
        await answer('a')
        assert.deepEqual(out(), ['a', 'b'])
      })
    }

    test('a branch that lasts keeps asking', async ({ assert }) => {
      const engine = engineOf()
      await start(engine, 'a')
      let end = () => {}
      engine.register('two', '1', (ctx) =>
        Promise.all([
          ctx.step('call', ctx.runId, { queue: 'q' }),
          ctx.localStep('long', () => new Promise<void>((resolve) => (end = resolve))),
        ])
      )
      await engine.start('two', null, 'b')
      await world.quiet()
      assert.deepEqual(out(), ['a'])
      await answer('a')
      assert.deepEqual(out(), ['a', 'b'])
      assert.equal(await world.status('b'), 'running')
      await world.held.complete('b:0', 'ok')
      end()
      await world.ended('b')
      assert.equal(await world.status('b'), 'completed')
    })
  })
}

const [memory] = await storesUnderTest()

test.group('Step queues | a backend that fails', (group) => {
  const world = useWorld(group, memory)

  test('a backend that cannot answer denies for a second, and is reported', async ({ assert }) => {
    const admission = new InMemoryAdmissionBackend({ clock: world.time.clock })
    const engine = world.engine({ transport: 'held', admission })
    register(engine)
    const { tryAdmit } = admission
    admission.tryAdmit = () => Promise.reject(new Error('no redis'))
    await engine.start('w', {}, 'a')
    await world.parked('a')
    assert.isEmpty(world.held.sent)
    assert.include(String(world.reports), 'no redis')
    admission.tryAdmit = tryAdmit
    await world.time.advance(RETRY_MS)
    await engine.resumeDueTimers()
    await world.quiet()
    assert.lengthOf(world.held.sent, 1)
  })

  test('so does one that cannot tell whether a queue is one', async ({ assert }) => {
    const admission = new InMemoryAdmissionBackend({ clock: world.time.clock })
    const engine = world.engine({ transport: 'held', admission })
    register(engine)
    const { handles, tryAdmit } = admission
    admission.handles = () => {
      throw new Error('no redis')
    }
    admission.tryAdmit = () => Promise.reject(new Error('no redis'))
    await engine.start('w', {}, 'a')
    await world.parked('a')
    assert.isEmpty(world.held.sent)
    assert.include(String(world.reports), 'no redis')
    Object.assign(admission, { handles, tryAdmit })
    await world.time.advance(RETRY_MS)
    await engine.resumeDueTimers()
    await world.quiet()
    assert.lengthOf(world.held.sent, 1)
  })

  test('so does one that answers with nothing', async ({ assert }) => {
    const admission = new InMemoryAdmissionBackend({ clock: world.time.clock })
    const engine = world.engine({ transport: 'held', admission })
    register(engine)
    admission.tryAdmit = () => Promise.resolve(undefined as never)
    await engine.start('w', {}, 'a')
    await world.parked('a')
    const { wakeAt } = await world.run('a')
    assert.equal(wakeAt, world.time.now + RETRY_MS)
    assert.include(String(world.reports), 'the backend gave no answer')
  })

  test('a backend that does not tell who is next has every waiter asked again', async ({
    assert,
  }) => {
    const admission = new InMemoryAdmissionBackend({ clock: world.time.clock })
    const onFreed = admission.onFreed.bind(admission)
    admission.onFreed = (listener) => onFreed((queue) => listener(queue))
    const engine = world.engine({ transport: 'held', admission })
    register(engine)
    for (const id of ['a', 'b', 'c']) {
      await engine.start('w', {}, id)
      await world.parked(id)
    }
    for (const id of ['a', 'b']) {
      await world.held.complete(`${id}:0`, 'ok')
      await world.quiet()
    }
    assert.deepEqual(
      world.held.sent.map(({ runId }) => runId),
      ['a', 'b', 'c']
    )
  })

  test('options and queues that cannot be are refused by name', async ({ assert }) => {
    const engine = world.engine()
    const refused: [StepDispatchOpts, string][] = [
      [{ queue: '' }, 'ctx.step("call"): queue must not be empty'],
      [{ fairnessKey: 7 as never }, 'ctx.step("call"): fairnessKey must be a string, got number'],
      [{ priority: Number.NaN }, 'ctx.step("call"): priority must be a number'],
      [{ queue: 'q', timeoutMs: 5 }, 'ctx.step("call"): queue and timeoutMs exclude each other'],
    ]
    engine.register('w', '1', (ctx, i: number) => ctx.step('call', null, refused[i][0]))
    for (const [i, [, message]] of refused.entries()) {
      await engine.start('w', i, `r${i}`)
      const { error } = await world.ended(`r${i}`)
      assert.include(error?.message, message)
    }
    assert.throws(
      () => engine.registerQueue({ name: 'q', concurrency: 0.5 }),
      'registerQueue: concurrency of queue "q" must be a whole number of at least 1'
    )
    assert.throws(
      () => engine.registerQueue({ name: 'q', limit: 1 } as never),
      /registerQueue: limit of queue "q" is no option of a queue/
    )
    assert.throws(
      () =>
        engine.registerQueue({
          name: 'q',
          rateLimit: { limit: 1, periodMs: 1, burst: 2 } as never,
        }),
      /registerQueue: rateLimit.burst of queue "q" is unknown/
    )
  })

  test('what is no backend is refused', ({ assert }) => {
    for (const admission of [() => {}, { tryAdmit: () => {} }]) {
      assert.throws(
        () => world.engine({ admission: admission as never }),
        /WorkflowEngine: admission must be an admission backend/
      )
    }
  })

  test('a slot that could not be given back is given back by a pass', async ({ assert }) => {
    const admission = new InMemoryAdmissionBackend({ clock: world.time.clock })
    const engine = world.engine({ transport: 'held', admission })
    register(engine)
    await engine.start('w', {}, 'a')
    await world.parked('a')
    const { release } = admission
    admission.release = () => Promise.reject(new Error('no redis'))
    await world.held.complete('a:0', 'ok')
    await world.ended('a')
    await engine.start('w', {}, 'b')
    await world.parked('b')
    admission.release = release
    await engine.resumeDueTimers()
    await world.quiet()
    assert.lengthOf(world.held.sent, 2)
  })
})
