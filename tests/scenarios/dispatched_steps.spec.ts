/*
 * Dispatched steps: retries across turns, what a result may and may not do, lost tasks, and transports
 * that lose everything with their process.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import { FatalError } from '../../src/errors.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import type { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import { currentStep } from '../../src/transport/step_logger.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Dispatched steps | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a step is addressed by reference or by name, with the declared policy under the call’s', async ({
      assert,
    }) => {
      const charge = defineStep('billing:charge', async (n: number) => n * 100, {
        retries: 2,
        backoffMs: 5000,
      })
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => [
        await ctx.step(charge, 5),
        await ctx.step(charge, 6, { backoffMs: 1000 }),
        await ctx.step<number>('by-name', { n: 7 }, { priority: 3 }),
      ])
      await engine.start('w', null, 'r')
      const first = await world.held.task('billing:charge')
      assert.deepInclude(first, { input: 5, stepId: 'r:0', attempt: 1, group: 'billing-charge' })
      await world.held.fail(first, 'once')
      assert.deepInclude(await world.parked('r'), { wakeAt: world.time.now + 5000 })
      world.time.jump(5000)
      await engine.resumeDueTimers()
      const again = await world.held.task('billing:charge', 2)
      assert.deepInclude(again, { stepId: 'r:0', attempt: 2, input: 5 })
      await world.held.complete(again, 500)
      await world.held.fail(await world.held.task('billing:charge', 3), 'once')
      assert.deepInclude(await world.parked('r'), { wakeAt: world.time.now + 1000 })
      world.time.jump(1000)
      await engine.resumeDueTimers()
      await world.held.complete(await world.held.task('billing:charge', 4), 600)
      const named = await world.held.task('by-name')
      assert.deepInclude(named, { input: { n: 7 }, priority: 3, attempt: 1 })
      await world.held.complete(named, 7)
      assert.deepEqual(await world.output('r'), [500, 600, 7])
    })

    test('a function without a step name is refused', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.step((async () => 1) as never, 1))
      await engine.start('w', null, 'r')
      assert.containsSubset(await world.ended('r'), {
        status: 'failed',
        error: { code: 'invalid_argument' },
      })
    })

    test('the last failure carries code and details to the body, and to the run', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx, caught: boolean) => {
        const call = ctx.step('charge', 1, { retries: 2 })
        return caught
          ? call.catch((error: Error & { code: string; details: unknown }) => ({
              name: error.name,
              message: error.message,
              code: error.code,
              details: error.details,
            }))
          : call
      })
      const error = { message: 'declined', code: 'card_declined', details: { card: 1 } }
      for (const caught of [true, false]) {
        const id = `r-${caught}`
        await engine.start('w', caught, id)
        for (let n = 1; n <= 2; n++) {
          const task = await until(
            () => world.held.sent.find((sent) => sent.runId === id && sent.attempt === n),
            'the task'
          )
          await world.held.fail(task, { ...error, message: `declined ${n}` })
        }
        const run = await world.ended(id)
        const expected = { ...error, message: 'declined 2' }
        if (caught) assert.deepEqual(run.output, { name: 'RemoteStepError', ...expected })
        else assert.containsSubset(run, { status: 'failed', error: expected })
      }
    })

    test('a failure that forbids another attempt is final', async ({ assert }) => {
      const engine = world.engine()
      let tries = 0
      engine.handle('fatal', () => {
        tries += 1
        throw new FatalError('never', 'never_ever', { why: 1 })
      })
      engine.register('w', '1', async (ctx) => ctx.step('fatal', 1, { retries: 9 }))
      await engine.start('w', null, 'r')
      assert.containsSubset(await world.ended('r'), {
        status: 'failed',
        error: { message: 'never', code: 'never_ever', details: { why: 1 } },
      })
      assert.equal(tries, 1)
    })

    test('results that come twice, for strangers or for other steps settle nothing', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      const events = world.eventsOf(engine)
      engine.register('w', '1', async (ctx) => [await ctx.step('a', 1), await ctx.step('b', 2)])
      await engine.start('w', null, 'r')
      const a = await world.held.task('a')
      const stray = { seq: 0, stepId: 'nobody:0', status: 'completed' as const, output: 'stray' }
      await world.held.deliver({ ...stray, runId: 'nobody' })
      await world.held.deliver({ ...stray, runId: 'r' })
      await world.held.deliver({ ...stray, runId: 'r', stepId: 'r:7', seq: 7 })
      await world.quiet()
      assert.deepEqual(await world.timeline('r'), [[0, 'a', 'pending']])
      await world.held.complete(a, 'first')
      await world.held.complete(a, 'second')
      await world.held.fail(a, 'third')
      const b = await world.held.task('b')
      await world.held.fail(a, 'late')
      await world.held.complete(b, 'b')
      assert.deepEqual(await world.output('r'), ['first', 'b'])
      const ends = events.filter((event) => event.type === 'step.completed')
      assert.deepEqual(
        ends.map((event) => event.name),
        ['a', 'b']
      )
      assert.lengthOf(world.held.sent, 2)
    }).tags(['@scenario-20'])

    test('of results that come at the same time one settles the step', async ({ assert }) => {
      const engines = [0, 1].map(() => world.engine({ transport: 'held' }))
      let ends = 0
      for (const engine of engines) {
        engine.subscribe(({ type }) => void (ends += Number(type === 'step.completed')))
        engine.register('w', '1', async (ctx) => ctx.step('a', 1))
      }
      for (let round = 0; round < 5; round++) {
        const id = `r${round}`
        await engines[0].start('w', null, id)
        await until(() => world.held.times(`${id}:0`), 'the task')
        await Promise.all(
          engines.flatMap((engine) =>
            [1, 2].map((n) => world.held.complete(`${id}:0`, n, world.port(engine)))
          )
        )
        assert.include([1, 2], (await world.output(id)) as number)
      }
      assert.equal(ends, 5)
    })
      .tags(['@scenario-20'])
      .skip(!kind.complete, 'without conditional writes a row is read before it is written')

    test('a result after a cancel changes nothing', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.step('a', 1))
      await engine.start('w', null, 'r')
      const task = await world.held.task('a')
      await world.parked('r')
      await engine.cancel('r')
      await world.held.complete(task, 'late')
      await world.held.fail(task, 'later')
      await world.quiet()
      assert.deepEqual(await world.timeline('r'), [[0, 'a', 'pending']])
      assert.equal(await world.status('r'), 'cancelled')
    }).tags(['@scenario-20'])

    test('a result whose store write fails is not acknowledged, and settles when it comes again', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.step('a', 1))
      await engine.start('w', null, 'r')
      const task = await world.held.task('a')
      await world.parked('r')
      world.gate(engine).down()
      await assert.rejects(() => world.held.complete(task, 'x'), /ECONNREFUSED/)
      world.gate(engine).up()
      await world.held.complete(task, 'x')
      assert.equal(await world.output('r'), 'x')
    })

    test('a dispatch that no transport takes is a failed attempt, not a run in limbo', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.step('a', 1, { retries: 2, backoffMs: 1000 }))
      world.held.refuse = new Error('broker is gone')
      await engine.start('w', null, 'lucky')
      await engine.start('w', null, 'unlucky')
      await world.parked('unlucky')
      await world.parked('lucky')
      world.time.jump(1000)
      world.held.refuse = undefined
      await engine.runOne('lucky')
      await world.held.complete(await world.held.task('a'), 'sent')
      assert.equal(await world.output('lucky'), 'sent')
      world.held.refuse = new Error('broker is gone')
      await engine.resumeDueTimers()
      assert.containsSubset(await world.ended('unlucky'), {
        status: 'failed',
        error: { message: 'broker is gone' },
      })
    })

    test('without a transport a step fails with a sentence that says what to do', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'none' })
      engine.register('w', '1', async (ctx) => ctx.step('a', 1))
      await engine.start('w', null, 'r')
      const run = await world.ended('r')
      assert.equal(run.status, 'failed')
      assert.match(run.error!.message, /no transport.*ctx\.localStep/)
    })

    test('a task that stays silent is sent again when asked to, until it counts as lost', async ({
      assert,
    }) => {
      const options = { transport: 'held', remoteRedispatchMs: 10_000, remoteRedispatchMax: 3 }
      const engine = world.engine(options as never)
      engine.register('w', '1', async (ctx) => ctx.step('a', 1))
      for (const [id, saved] of [
        ['lost', false],
        ['saved', true],
      ] as const) {
        await engine.start('w', null, id)
        for (let sends = 1; sends <= 3; sends++) {
          const parked = await world.parked(id)
          assert.equal(parked.wakeAt, world.time.now + 10_000)
          assert.equal(world.held.times(`${id}:0`), sends)
          world.time.jump(9999)
          assert.deepEqual(await engine.resumeDueTimers(), [])
          world.time.jump(1)
          if (saved && sends === 3) await world.held.complete(`${id}:0`, 'late, but here')
          else await engine.resumeDueTimers()
        }
        const run = await world.ended(id)
        if (saved) assert.equal(run.output, 'late, but here')
        else {
          assert.equal(run.error?.code, 'remote_step_lost')
          assert.match(run.error!.message, /"a" was dispatched 3 times without an answer/)
        }
      }
    })

    test('a beat puts off that a task counts as lost', async ({ assert }) => {
      const engine = world.engine({ transport: 'held', remoteRedispatchMs: 10_000 })
      engine.register('w', '1', async (ctx) => ctx.step('a', 1))
      await engine.start('w', null, 'r')
      const task = await world.held.task('a')
      await world.parked('r')
      await world.held.beat(task, { done: 1 })
      await world.time.advance(9000)
      await world.held.beat(task, { done: 2 })
      await world.time.advance(2000)
      const row = await world.store.getCheckpoint('r', 0)
      assert.isAbove(row!.lastHeartbeatAt!.getTime(), world.time.now - 10_000)
      await engine.resumeDueTimers()
      await world.quiet()
      assert.equal(world.held.times('r:0'), 1)
      const parked = await world.parked('r')
      assert.isAbove(parked.wakeAt!, world.time.now)
    }).skip(!kind.complete, 'a store without recordStepHeartbeat keeps no beats')

    test('an old task of a broker is never sent again unasked', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.step('a', 1))
      await engine.start('w', null, 'r')
      for (let days = 0; days < 3; days++) {
        await world.parked('r')
        world.time.jump(86_400_000)
        await engine.resumeDueTimers()
      }
      await world.parked('r')
      assert.equal(world.held.times('r:0'), 1)
    })

    test('a task that was lost with its process comes back', async ({ assert }) => {
      const [doomed, living] = [world.engine(), world.engine()]
      doomed.handle('a', () => new Promise(() => {}))
      living.handle('a', () => 'done')
      for (const engine of [doomed, living]) {
        engine.register('w', '1', async (ctx) => ctx.step('a', 1))
      }
      await doomed.start('w', null, 'r')
      const parked = await world.parked('r')
      assert.equal(parked.wakeAt, world.time.now + 60_000)
      await world.crash(doomed)
      world.time.jump(59_999)
      assert.deepEqual(await living.resumeDueTimers(), [])
      world.time.jump(1)
      await living.resumeDueTimers()
      assert.equal(await world.output('r'), 'done')
      assert.deepInclude(await world.store.getCheckpoint('r', 0), { attempts: 1, stepId: 'r:0' })
    })

    test('a task that is alive is never doubled, here or elsewhere', async ({ assert }) => {
      const [busy, other] = [world.engine(), world.engine()]
      const gate = deferred<string>()
      let ran = 0
      for (const engine of [busy, other]) {
        engine.handle('slow', () => {
          ran += 1
          return gate.promise
        })
        engine.register('w', '1', async (ctx) => ctx.step('slow', 1))
      }
      await busy.start('w', null, 'r')
      await world.parked('r')
      for (let minute = 0; minute < 5; minute++) {
        await world.time.advance(60_000)
        // Beats tell the others; a store without recordStepHeartbeat keeps none.
        if (kind.complete) await other.resumeDueTimers()
        await busy.resumeDueTimers()
        await world.quiet()
      }
      assert.equal(ran, 1)
      gate.resolve('done')
      assert.equal(await world.output('r'), 'done')
      assert.equal(ran, 1)
    })

    test('a task that nobody serves yet waits in its process, and is not doubled', async ({
      assert,
    }) => {
      const engine = world.engine()
      const transport = world.transport(engine) as InMemoryTransport
      transport.deferConsumers()
      let ran = 0
      engine.handle('late', () => {
        ran += 1
        return 'done'
      })
      engine.register('w', '1', async (ctx) => ctx.step('late', 1))
      await engine.start('w', null, 'r')
      await world.parked('r')
      for (let minute = 0; minute < 3; minute++) {
        await world.time.advance(61_000)
        await engine.resumeDueTimers()
      }
      assert.equal(ran, 0)
      engine.startConsumers()
      assert.equal(await world.output('r'), 'done')
      assert.equal(ran, 1)
    })

    test('a handler sees its own logger, and no workflow', async ({ assert }) => {
      const engine = world.engine()
      const seen: unknown[] = []
      engine.handle('look', async (input, log) => {
        seen.push(currentStep() === log)
        await Promise.resolve()
        currentStep()?.info('line', { input })
        return 'done'
      })
      engine.register('w', '1', async (ctx) => {
        await ctx.step('look', 5)
        return ctx.localStep('local', async (log) => {
          await Promise.resolve()
          seen.push(currentStep() === log)
        })
      })
      await engine.start('w', null, 'r')
      await world.ended('r')
      assert.deepEqual(seen, [true, true])
      assert.isUndefined(currentStep())
      const [row] = await world.rows('r')
      assert.containsSubset(row.events, [{ message: 'line', level: 'info', data: { input: 5 } }])
    })
  })
}
