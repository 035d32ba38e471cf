/*
 * Runs whose executor is gone, or is thought to be: who takes over, what counts, and what is left alone.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'
import { crashIn, LEASE_MS } from './crashed.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Recovery | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a run with a dispatched step in flight is parked, due at once, and counts no crash', async ({
      assert,
    }) => {
      const [doomed, living] = [0, 1].map(() => world.engine({ transport: 'held' }))
      for (const engine of [doomed, living]) {
        engine.register('w', '1', async (ctx) => {
          const [result] = await Promise.all([
            ctx.step('remote', 1),
            ctx.localStep('work', () => (engine === doomed ? new Promise(() => {}) : 'done')),
          ])
          return result
        })
      }
      void doomed.start('w', null, 'r')
      const task = await world.held.task('remote')
      await world.crash(doomed)
      world.time.jump(LEASE_MS + 1)
      for (let pass = 0; pass < 3; pass++) await living.recoverIncomplete()
      await world.parked('r')
      const run = await world.run('r')
      assert.notProperty(run, 'recoveryAttempts')
      assert.notProperty(run, 'lockedBy')
      await world.held.complete(task, 'answer')
      assert.equal(await world.output('r'), 'answer')
    }).tags(['@race-36', '@control-30'])

    /** Dies between the row of `r:0` and its dispatch. */
    async function dieUnsent(doomed: WorkflowEngine) {
      const die = async (proceed: () => Promise<unknown>) => {
        const answer = await proceed()
        await world.crash(doomed)
        return answer
      }
      world.gate(doomed).around('commitTurn', die)
      world.gate(doomed).around('saveCheckpoint', die)
      void doomed.start('w', null, 'r')
      await until(() => world.gate(doomed).crashed, 'the crash')
      await world.quiet()
    }

    const pair = () =>
      [0, 1].map(() => {
        const engine = world.engine({ transport: 'held' })
        engine.register('w', '1', async (ctx) => ctx.step('remote', { n: 1 }))
        return engine
      })

    const rescues = {
      'by recovery': (living: WorkflowEngine) => living.recoverIncomplete(),
      'by a requeue that comes first': (living: WorkflowEngine) => living.requeue('r'),
    }
    for (const [how, rescue] of Object.entries(rescues)) {
      test(`a call that the lost turn recorded and may not have sent is sent, under its own id, ${how}`, async ({
        assert,
      }) => {
        const [doomed, living] = pair()
        await dieUnsent(doomed)
        assert.lengthOf(world.held.sent, 0)

        world.time.jump(LEASE_MS + 1)
        await rescue(living)
        const task = await world.held.task('remote')
        assert.deepInclude(task, { stepId: 'r:0', attempt: 1, input: { n: 1 } })
        await world.held.complete(task, 'answer')
        assert.equal(await world.output('r'), 'answer')
        assert.equal(world.held.times('r:0'), 1)
      })
    }

    test('a requeue that cannot send what the lost turn left says so; recovery still does', async ({
      assert,
    }) => {
      const [doomed, living] = pair()
      await dieUnsent(doomed)
      world.time.jump(LEASE_MS + 1)
      world.held.refuse = new Error('the broker is away')
      await assert.rejects(() => living.requeue('r'), /the broker is away/)
      assert.equal(await world.status('r'), 'running')
      world.held.refuse = undefined
      await living.recoverIncomplete()
      await world.held.complete(await world.held.task('remote'), 'answer')
      assert.equal(await world.output('r'), 'answer')
    })

    test('a call is sent although the clock was set back before its turn died', async ({
      assert,
    }) => {
      const [doomed, living] = pair()
      const stop = doomed.subscribe(({ type }) => {
        if (type === 'run.started') world.time.jump(-20)
      })
      await dieUnsent(doomed)
      stop()
      assert.lengthOf(world.held.sent, 0)

      world.time.jump(LEASE_MS + 21)
      await living.recoverIncomplete()
      await world.held.complete(await world.held.task('remote'), 'answer')
      assert.equal(await world.output('r'), 'answer')
    })

    test('a call of an earlier turn is not sent again by recovery', async ({ assert }) => {
      const [doomed, living] = [0, 1].map(() => world.engine({ transport: 'held' }))
      for (const engine of [doomed, living]) {
        engine.register('w', '1', async (ctx) => {
          const [result] = await Promise.all([
            ctx.step('remote', 1),
            ctx
              .waitForSignal('go')
              .then(() =>
                ctx.localStep('work', () => (engine === doomed ? new Promise(() => {}) : 0))
              ),
          ])
          return result
        })
      }
      await doomed.start('w', null, 'r')
      const task = await world.held.task('remote')
      await world.parked('r')
      world.time.jump(1000)
      void doomed.signal('go')
      await world.reached('r', 'running')
      await world.quiet()
      await world.crash(doomed)
      world.time.jump(LEASE_MS + 1)
      await living.recoverIncomplete()
      await world.quiet()
      assert.lengthOf(world.held.sent, 1)
      await world.held.complete(task, 'answer')
      assert.equal(await world.output('r'), 'answer')
    })

    test('an undo in flight when its engine died is sent again as what it is', async ({
      assert,
    }) => {
      const [doomed, living] = [0, 1].map(() => world.engine({ transport: 'held' }))
      for (const engine of [doomed, living]) {
        engine.register('w', '1', async (ctx) => {
          await ctx.step('reserve', { n: 1 }, { compensate: 'release' })
          throw new Error('no')
        })
      }
      void doomed.start('w', null, 'r')
      const reserve = await world.held.task('reserve')
      await world.held.complete(reserve, 'seat', world.port(doomed))
      await world.held.task('release')
      await world.crash(doomed)
      world.time.jump(LEASE_MS + 1)
      await living.recoverIncomplete()
      const again = await world.held.task('release', 2)
      assert.deepEqual(again.input, { input: { n: 1 }, output: 'seat' })
      assert.sameMembers(
        world.held.sent.map((task) => task.name),
        ['reserve', 'release', 'release']
      )
      await world.held.complete(again)
      const run = await world.ended('r')
      assert.deepInclude(run.error, { message: 'no' })
      assert.deepInclude(await world.timeline('r'), [-1, 'compensate:reserve', 'completed'])
    })

    test('recovery executes no body itself', async ({ assert }) => {
      await crashIn(world, 'r')
      world.time.jump(LEASE_MS + 1)
      const dispatched: string[] = []
      const living = world.engine({
        runDispatcher: { dispatch: (id: string) => void dispatched.push(id) },
      })
      let bodies = 0
      living.register('w', '1', async () => {
        bodies += 1
        return 'done'
      })
      assert.deepEqual(await living.recoverIncomplete(), [{ runId: 'r', status: 'pending' }])
      await world.quiet()
      assert.equal(bodies, 0)
      assert.deepEqual(dispatched, ['r'])
      assert.deepInclude(await world.run('r'), { status: 'pending', recoveryAttempts: 1 })
      await living.runPending()
      assert.equal(await world.output('r'), 'done')
    }).tags(['@race-37', '@control-31'])

    test('a run that crashes too often dies; a retry starts its count anew', async ({ assert }) => {
      const operator = world.engine({
        maxRecoveryAttempts: 1,
        runDispatcher: { dispatch: () => {} },
      })
      const events = world.eventsOf(operator)
      const crashAgain = async () => {
        const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
        const begun = deferred<void>()
        engine.register('w', '1', () => {
          begun.resolve()
          return new Promise(() => {})
        })
        void engine.runOne('r')
        await begun.promise
        await world.crash(engine)
        world.time.jump(LEASE_MS + 1)
        const [moved] = await operator.recoverIncomplete()
        return moved
      }
      operator.register('w', '1', async () => 'done')
      await operator.start('w', null, 'r')
      assert.deepInclude(await crashAgain(), { status: 'pending' })
      assert.deepInclude(await crashAgain(), { status: 'dead' })
      const dead = await world.run('r')
      assert.deepInclude(dead.error, { code: 'max_recovery_attempts' })
      assert.deepEqual(
        events.map((event) => event.type),
        ['run.failed']
      )
      assert.deepEqual(await operator.resume('r'), {
        runId: 'r',
        status: 'dead',
        error: dead.error,
      })

      await operator.requeue('r')
      assert.deepInclude(await world.run('r'), { status: 'pending', recoveryAttempts: 0 })
      assert.deepInclude(await crashAgain(), { status: 'pending' })
      await operator.runPending()
      assert.equal(await world.output('r'), 'done')
    }).tags(['@race-38', '@control-28'])

    test('progress between crashes starts the count anew, a crash in a later turn counts too', async ({
      assert,
    }) => {
      const survivor = world.engine({
        maxRecoveryAttempts: 2,
        runDispatcher: { dispatch: () => {} },
      })
      survivor.register('w', '1', async (ctx) => {
        for (let i = 0; i < 4; i++) await ctx.waitForSignal(`go${i}`)
      })
      await survivor.start('w', null, 'r')
      await survivor.runPending()
      for (let i = 0; i < 4; i++) {
        const doomed = world.engine({ runDispatcher: { dispatch: () => {} } })
        doomed.register('w', '1', () => new Promise(() => {}))
        void doomed.signal(`go${i}`)
        await world.reached('r', 'running')
        await world.quiet()
        await world.crash(doomed)
        world.time.jump(LEASE_MS + 1)
        await survivor.recoverIncomplete()
        assert.deepInclude(await world.run('r'), { status: 'pending', recoveryAttempts: 1 })
        await survivor.runPending()
      }
      assert.equal(await world.status('r'), 'completed')
    })

    test('an executor that lost its run neither writes nor lets go of the lease of the next', async ({
      assert,
    }) => {
      const [slow, next, third] = [world.engine(), world.engine(), world.engine()]
      const gates = new Map([slow, next].map((engine) => [engine, deferred<string>()]))
      for (const engine of [slow, next]) {
        engine.register('w', '1', async (ctx) => {
          const first = await ctx.localStep('work', () => gates.get(engine)!.promise)
          return ctx.localStep('more', () => `${first} and more`)
        })
      }
      // Its renewals do not get through.
      world.gate(slow).around('renewRunLock', () => new Promise(() => {}))
      await slow.start('w', null, 'r')
      await world.quiet()
      world.time.jump(LEASE_MS + 1)
      await next.recoverIncomplete()
      await until(async () => world.isHeldBy('r', next), 'the takeover')
      await world.quiet()

      gates.get(slow)!.resolve('stale')
      await world.quiet()
      const held = await world.run('r')
      assert.deepInclude(held, { status: 'running', lockedBy: next.instanceId })
      assert.deepEqual(await third.recoverIncomplete(), [])
      gates.get(next)!.resolve('fresh')
      assert.equal(await world.output('r'), 'fresh and more')
      assert.deepInclude(await world.store.getCheckpoint('r', 0), { output: 'fresh' })
    }).tags(['@race-42', '@control-33'])

    test('a body whose run was taken away gets to clean up', async ({ assert }) => {
      const [slow, next] = [world.engine(), world.engine()]
      const gate = deferred<void>()
      const cleanups: string[] = []
      for (const engine of [slow, next]) {
        engine.register('w', '1', async (ctx) => {
          try {
            await Promise.all([
              ctx.localStep('work', () => (engine === slow ? gate.promise : undefined)),
              ctx.waitForSignal('go'),
            ])
          } finally {
            cleanups.push(engine === slow ? 'slow' : 'next')
          }
        })
      }
      world.gate(slow).around('renewRunLock', () => new Promise(() => {}))
      await slow.start('w', null, 'r')
      await world.quiet()
      world.time.jump(LEASE_MS + 1)
      await next.recoverIncomplete()
      await world.parked('r')
      assert.deepEqual(cleanups, ['next'])
      gate.resolve()
      await world.quiet()
      assert.deepEqual(cleanups, ['next', 'slow'])
      assert.equal(await world.status('r'), 'suspended')
    })

    test('a run that executes longer than its lease keeps it', async ({ assert }) => {
      const [engine, other] = [world.engine(), world.engine()]
      const gate = deferred<string>()
      let bodies = 0
      for (const each of [engine, other]) {
        each.register('w', '1', async (ctx) => {
          bodies += 1
          return ctx.localStep('work', () => gate.promise)
        })
      }
      await engine.start('w', null, 'r')
      await world.quiet()
      for (let i = 0; i < 5; i++) {
        await world.time.advance(LEASE_MS)
        assert.deepEqual(await other.recoverIncomplete(), [])
        assert.deepEqual(await engine.recoverIncomplete(), [])
      }
      gate.resolve('done')
      assert.equal(await world.output('r'), 'done')
      assert.equal(bodies, 1)
    }).tags(['@race-43', '@control-32'])

    test('two instances that found the same dead run: one takes it, its body runs once', async ({
      assert,
    }) => {
      await crashIn(world, 'r')
      world.time.jump(LEASE_MS + 1)
      let bodies = 0
      const rivals = [world.engine(), world.engine()]
      const bothListed = deferred<void>()
      let listed = 0
      const hold = async (proceed: () => Promise<unknown>) => {
        const found = await proceed()
        listed += 1
        if (listed === 2) bothListed.resolve()
        await bothListed.promise
        return found
      }
      for (const engine of rivals) {
        world.gate(engine).around('listOrphanedRuns', hold)
        world.gate(engine).around('listIncompleteRuns', hold)
        engine.register('w', '1', async (ctx) => {
          bodies += 1
          return ctx.localStep('work', () => 'done')
        })
      }
      const taken = await Promise.all(rivals.map((engine) => engine.recoverIncomplete()))
      assert.lengthOf(taken.flat(), 1)
      assert.equal(await world.output('r'), 'done')
      await world.quiet()
      assert.equal(bodies, 1)
    }).tags(['@scenario-6', '@control-32'])

    test('a run that was taken over and came back while its old body still runs here runs once more', async ({
      assert,
    }) => {
      const [engine, other] = [world.engine(), world.engine({ runDispatcher: { dispatch() {} } })]
      const gates = [deferred<void>(), deferred<void>()]
      let bodies = 0
      engine.register('w', '1', async (ctx) => {
        const gate = gates[bodies++]
        return ctx.localStep('work', async () => {
          await gate.promise
          return gates.indexOf(gate)
        })
      })
      world.gate(engine).around('renewRunLock', () => new Promise(() => {}))
      await engine.start('w', null, 'r')
      await world.quiet()
      world.time.jump(LEASE_MS + 1)
      assert.lengthOf(await other.recoverIncomplete(), 1)
      const pass = engine.runPending()
      await world.quiet()
      gates[0].resolve()
      gates[1].resolve()
      await pass
      await world.quiet()
      await engine.runPending()
      const run = await world.ended('r')
      assert.deepInclude(run, { status: 'completed', output: 1, recoveryAttempts: 0 })
      assert.equal(bodies, 2)
    })

    test('old engines drain while new ones recover: every run ends once, no lease is stranded', async ({
      assert,
    }) => {
      const ends = new Map<string, number>()
      const generation = (transport: 'held') => {
        const engine = world.engine({ transport })
        engine.subscribe(({ type, runId }) => {
          if (type === 'run.completed') ends.set(runId, (ends.get(runId) ?? 0) + 1)
        })
        engine.register('w', '1', async (ctx, n: number) => {
          const a = await ctx.localStep('a', () => n)
          const b = await ctx.step<number>('remote', a)
          return ctx.localStep('b', () => a + b)
        })
        return engine
      }
      const old = generation('held')
      const ids = Array.from({ length: 12 }, (_, i) => `r${i}`)
      for (const [i, id] of ids.entries()) await old.start('w', i, id)
      const young = generation('held')
      const draining = old.drain(10_000)
      for (const [i, id] of ids.entries()) {
        const task = await until(() => world.held.sent.find((t) => t.runId === id), id)
        const via = world.port(i % 2 ? old : young)
        await Promise.all([world.held.complete(task, 100, via), young.recoverIncomplete()])
      }
      await draining
      for (const [i, id] of ids.entries()) {
        assert.equal(await world.output(id), i + 100)
        assert.notProperty(await world.run(id), 'lockedBy')
      }
      // An end is told after it has been written.
      await until(() => ends.size === ids.length, 'an event of every end')
      await world.quiet()
      assert.deepEqual([...new Set(ends.values())], [1])
      assert.isNull(await old.runOne('r0'))
    }).tags(['@scenario-19'])
  })
}
