/*
 * The verbs of an engine: starting, waiting, cancelling, bringing back.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Verbs | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('start answers pending, runs later, and never inside the call', async ({ assert }) => {
      const engine = world.engine()
      let inside = true
      let beganInside: boolean | undefined
      engine.register('w', '1', async () => {
        beganInside = inside
      })
      const starting = engine.start('w', null, 'r')
      starting.finally(() => (inside = false)).catch(() => {})
      assert.deepEqual(await starting, { runId: 'r', status: 'pending' })
      await world.ended('r')
      assert.isFalse(beganInside)
    })

    test('what is given at the start is kept: tags once, attributes, namespace, origin', async ({
      assert,
    }) => {
      const engine = world.engine({ namespace: 'blue' })
      engine.register('w', '1', async () => {}, { tags: ['a', 'b'], origin: 'own' })
      await engine.start('w', { x: 1 }, 'r', {
        tags: ['b', 'c', 'durable:mine'],
        searchAttributes: { n: 1 },
        priority: 2,
      })
      const run = await world.ended('r')
      assert.sameMembers(run.tags!, ['a', 'b', 'c'])
      assert.containsSubset(run, {
        input: { x: 1 },
        namespace: 'blue',
        origin: 'own',
        priority: 2,
        searchAttributes: { n: 1 },
        workflowVersion: '1',
      })
      assert.deepEqual(run.createdAt, new Date(world.time.now))
      const operator = world.engine()
      operator.register('plain', '1', async () => {})
      await operator.start('plain', undefined, 'p')
      const plain = await world.ended('p')
      assert.equal(plain.namespace, 'default')
      assert.isUndefined(plain.input)
      assert.notProperty(plain, 'tags')
    })

    test('a delayed start begins at its time, and not before', async ({ assert }) => {
      const engine = world.engine()
      const events = world.eventsOf(engine)
      engine.register('w', '1', async (ctx) => ctx.now())
      const startAt = new Date(world.time.now + 60_000)
      assert.deepEqual(await engine.start('w', null, 'r', { startAt }), {
        runId: 'r',
        status: 'suspended',
      })
      await engine.runPending()
      world.time.jump(59_999)
      await engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(events, [])
      world.time.jump(1)
      await engine.resumeDueTimers()
      assert.equal(await world.output('r'), startAt.getTime())
      assert.deepEqual(
        events.map((event) => event.type),
        ['run.started', 'step.started', 'step.completed', 'run.completed']
      )
      for (const past of [world.time.now, world.time.now - 1, new Date(0)]) {
        const id = `past ${Number(past)}`
        assert.deepInclude(await engine.start('w', null, id, { startAt: past }), {
          status: 'pending',
        })
        await world.ended(id)
      }
    })

    test('signalWithStart creates the run once and delivers every payload once', async ({
      assert,
    }) => {
      const engine = world.engine()
      let bodies = 0
      engine.register('w', '1', async (ctx, first: number) => {
        bodies += 1
        const got = [first]
        while (got.length < 4) got.push(await ctx.waitForSignal<number>('in'))
        return got
      })
      for (const n of [1, 2, 3]) {
        const answer = await engine.signalWithStart('w', 0, 'r', { token: 'in', payload: n })
        assert.deepEqual(answer, { runId: 'r' })
        await world.quiet()
      }
      assert.deepEqual(await world.output('r'), [0, 1, 2, 3])
      assert.isAtLeast(bodies, 1)
      assert.equal(await world.store.countRuns({}), 1)
    })

    test('waiting ends at a suspension, or only at the end when asked to', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        await ctx.waitForSignal('go')
        return 'done'
      })
      await engine.start('w', null, 'r')
      assert.deepEqual(await engine.waitForRun('r'), { runId: 'r', status: 'suspended' })
      const end = engine.waitForRun('r', { terminal: true })
      await engine.signal('go')
      const done = { runId: 'r', status: 'completed' as const, output: 'done' }
      assert.deepEqual(await end, done)
      assert.deepEqual(await engine.waitForRun('r'), done)
      assert.deepEqual(await engine.waitForRun('r', { terminal: true }), done)
    })

    test('waiting sees an end that another engine made, polling', async ({ assert }) => {
      const [waiting, running] = [world.engine(), world.engine()]
      const gate = deferred<void>()
      running.register('w', '1', async (ctx) => ctx.localStep('a', () => gate.promise))
      await running.start('w', null, 'r')
      const end = waiting.waitForRun('r', { terminal: true })
      gate.resolve()
      await world.ended('r')
      await world.time.advance(250)
      assert.deepInclude(await end, { status: 'completed' })
      assert.equal(world.time.pending, 0)
    })

    test('waiting for a run that is yet to be created, and giving up', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 'done')
      const early = engine.waitForRun('r', { terminal: true })
      const never = engine.waitForRun('nobody', { timeoutMs: 3000 })
      await world.quiet()
      await engine.start('w', null, 'r')
      assert.deepInclude(await early, { output: 'done' })
      never.catch(() => {})
      await world.time.advance(2999)
      await world.time.advance(1)
      const error = await never.catch((thrown) => thrown)
      assert.equal(error.message, 'waitForRun(nobody) timed out after 3000ms')
      assert.equal(error.code, 'wait_timeout')
      await world.quiet()
      assert.equal(world.time.pending, 0)
    })

    test('waiting outlives reads that fail', async ({ assert }) => {
      const engine = world.engine()
      const other = world.engine()
      other.register('w', '1', async () => 'done')
      const end = engine.waitForRun('r', { terminal: true })
      world.gate(engine).down()
      await world.time.advance(1000)
      await other.start('w', null, 'r')
      await world.ended('r')
      await world.time.advance(1000)
      world.gate(engine).up()
      await world.time.advance(250)
      assert.deepInclude(await end, { output: 'done' })
    })

    test('a plain cancel ends every live run at once and drops its waits', async ({ assert }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      const events = world.eventsOf(engine)
      engine.register('w', '1', async (ctx) => ctx.waitForSignal(`go:${ctx.runId}`))
      for (const id of ['pending', 'waiting']) await engine.start('w', null, id)
      await engine.start('w', null, 'delayed', { startAt: world.time.now + 1000 })
      await engine.runOne('waiting')
      for (const id of ['pending', 'waiting', 'delayed']) {
        assert.deepEqual(await engine.cancel(id, { by: 'bob' }), {
          runId: id,
          status: 'cancelled',
          error: { message: 'cancelled' },
        })
        const run = await world.run(id)
        assert.deepInclude(run, { status: 'cancelled', cancelRequestedBy: 'bob' })
        assert.notProperty(run, 'wakeAt')
        assert.notProperty(run, 'wakeRequestedAt')
      }
      await world.quiet()
      assert.deepEqual(await world.store.listSignalWaiters(''), [])
      world.time.jump(10_000)
      assert.deepEqual(await engine.runPending(), [])
      assert.deepEqual(await engine.resumeDueTimers(), [])
      assert.lengthOf(
        events.filter((event) => event.type === 'run.failed'),
        3
      )
    })

    test('a cancel of a run that is over answers it untouched', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (_, how) => {
        if (how === 'failed') throw new Error('no')
        return how
      })
      for (const how of ['completed', 'failed']) {
        await engine.start('w', how, how)
        const before = await world.ended(how)
        assert.deepInclude(await engine.cancel(how, { compensate: true }), { status: how })
        assert.deepInclude(await engine.cancel(how), { status: how })
        assert.deepEqual(await world.run(how), before)
      }
    })

    test('requeue brings back what failed: what the run died of is tried again, what it survived stays', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      const tried: string[] = []
      let broken = true
      engine.register('w', '1', async (ctx) => {
        const caught = await ctx
          .localStep('caught', () => {
            tried.push('caught')
            throw new Error('caught')
          })
          .catch((error: Error) => error.message)
        const remote = await ctx.step('remote', 1).catch((error: Error) => error.message)
        await ctx.localStep('kept', () => void tried.push('kept'))
        await ctx.localStep('fatal', () => {
          tried.push('fatal')
          if (broken) throw new Error('broken')
        })
        return [caught, remote]
      })
      await engine.start('w', null, 'r')
      await world.held.fail(await world.held.task('remote'), 'remote failed')
      await world.ended('r')
      assert.deepEqual(tried, ['caught', 'kept', 'fatal'])
      await engine.requeue('r')
      await world.quiet()
      assert.equal(await world.status('r'), 'failed')
      assert.deepEqual(tried, ['caught', 'kept', 'fatal', 'fatal'])
      broken = false
      await engine.requeue('r')
      assert.deepEqual(await world.output('r'), ['caught', 'remote failed'])
      assert.deepEqual(tried, ['caught', 'kept', 'fatal', 'fatal', 'fatal'])
      assert.lengthOf(world.held.sent, 1)
    }).tags(['@race-39'])

    test('requeue gives a dispatched step that the run died of all its attempts again', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.step('remote', 1, { retries: 2 }))
      await engine.start('w', null, 'r')
      for (let n = 1; n <= 2; n++) await world.held.fail(await world.held.task('remote', n), 'no')
      await world.ended('r')
      await engine.requeue('r')
      const third = await world.held.task('remote', 3)
      assert.deepInclude(third, { attempt: 1, stepId: 'r:0' })
      await world.held.fail(third, 'no')
      await world.held.complete(await world.held.task('remote', 4), 'at last')
      assert.equal(await world.output('r'), 'at last')
    }).tags(['@race-39'])

    test('requeue refuses runs that are well, and those that somebody executes', async ({
      assert,
    }) => {
      const engine = world.engine()
      const gate = deferred<void>()
      let bodies = 0
      engine.register('w', '1', async (ctx, how) => {
        bodies += 1
        if (how === 'running') await ctx.localStep('a', () => gate.promise)
        if (how === 'cancelled') await ctx.waitForSignal('never')
        return how
      })
      for (const how of ['completed', 'cancelled', 'running']) await engine.start('w', how, how)
      await world.ended('completed')
      await world.parked('cancelled')
      await engine.cancel('cancelled')
      await world.reached('running', 'running')
      const before = bodies
      for (const how of ['completed', 'cancelled', 'running']) {
        assert.deepInclude(await engine.requeue(how), { runId: how, status: how })
      }
      await world.quiet()
      assert.equal(bodies, before)
      gate.resolve()
      assert.equal(await world.output('running'), 'running')
      assert.equal(bodies, before)
    })

    test('requeue of a waiting run gives it a turn and changes nothing else', async ({
      assert,
    }) => {
      const engine = world.engine()
      let bodies = 0
      engine.register('w', '1', async (ctx) => {
        bodies += 1
        return ctx.waitForSignal('go')
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.deepEqual(await engine.requeue('r'), { runId: 'r', status: 'pending' })
      await world.parked('r')
      assert.equal(bodies, 2)
      assert.notProperty(await world.run('r'), 'recoveryAttempts')
      await engine.signal('go', 1)
      assert.equal(await world.output('r'), 1)
    })

    test('requeue of a wait that timed out keeps the decision', async ({ assert }) => {
      const engine = world.engine()
      let broken = true
      engine.register('w', '1', async (ctx) => {
        const how = await ctx
          .waitForSignal('go', { timeoutMs: 1000 })
          .catch((error: Error & { code?: string }) => {
            if (error.code !== 'signal_timeout') throw error
            return 'timed out'
          })
        await ctx.localStep('a', () => {
          if (broken) throw new Error('broken')
        })
        return how
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      world.time.jump(1000)
      await engine.resumeDueTimers()
      await world.ended('r')
      await engine.signal('go', 'late')
      broken = false
      await engine.requeue('r')
      assert.equal(await world.output('r'), 'timed out')
    })

    test('two operators that requeue one run bring it back once', async ({ assert }) => {
      const engines = [world.engine(), world.engine()]
      let broken = true
      let tries = 0
      for (const engine of engines) {
        engine.register('w', '1', async (ctx) =>
          ctx.localStep('a', async () => {
            tries += 1
            if (broken) throw new Error('broken')
            return 'fixed'
          })
        )
      }
      await engines[0].start('w', null, 'r')
      await world.ended('r')
      broken = false
      await Promise.all(engines.flatMap((engine) => [engine.requeue('r'), engine.requeue('r')]))
      assert.equal(await world.output('r'), 'fixed')
      await world.quiet()
      assert.equal(tries, 2)
    })

    test('resume executes here and now, re-opens a failed run, and leaves others alone', async ({
      assert,
    }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      let broken = true
      engine.register('w', '1', async (ctx, how) => {
        if (how === 'fails') {
          await ctx.localStep('a', () => {
            if (broken) throw new Error('broken')
          })
        }
        if (how === 'waits') await ctx.waitForSignal('go')
        return how
      })
      await engine.start('w', 'fails', 'fails')
      assert.containsSubset(await engine.resume('fails'), { status: 'failed' })
      broken = false
      assert.deepEqual(await engine.resume('fails'), {
        runId: 'fails',
        status: 'completed',
        output: 'fails',
      })
      assert.deepInclude(await engine.resume('fails'), { status: 'completed' })
      await engine.start('w', 'waits', 'waits')
      assert.deepInclude(await engine.resume('waits'), { status: 'suspended' })
      assert.deepInclude(await engine.resume('waits'), { status: 'suspended' })
      await engine.cancel('waits')
      assert.deepInclude(await engine.resume('waits'), { status: 'cancelled' })
    })

    test('reads see what is stored: runs by query, counts, timelines', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, n: number) => {
        await ctx.localStep('a', () => n)
        if (n === 2) throw new Error('no')
      })
      for (let n = 0; n < 4; n++) {
        await engine.start('w', n, `r${n}`, { tags: [n % 2 ? 'odd' : 'even'] })
        await world.ended(`r${n}`)
        world.time.jump(1000)
      }
      const ids = async (query: object) => {
        const runs = await engine.listRuns(query)
        return runs.map((run) => run.id)
      }
      assert.deepEqual(await ids({}), ['r3', 'r2', 'r1', 'r0'])
      assert.deepEqual(await ids({ status: 'failed' }), ['r2'])
      assert.deepEqual(await ids({ tag: 'odd', size: 1 }), ['r3'])
      assert.equal(await engine.countRuns({ status: 'completed' }), 3)
      const run = await engine.getRun('r1')
      assert.deepInclude(run, { id: 'r1', status: 'completed' })
      const rows = await engine.listCheckpoints('r1')
      assert.containsSubset(rows, [{ seq: 0, name: 'a', output: 1 }])
    })
  })
}
