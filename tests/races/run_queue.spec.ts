/*
 * The run queue of a transport: messages are hints. Whatever is lost, late or doubled of them, every run
 * goes on by what its row says.
 */
import { test } from '@japa/runner'
import { InvalidArgumentError } from '../../src/errors.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { RunDispatch } from '../../src/wire/messages.ts'
import { type EngineOptions, storesUnderTest, until, useWorld } from '../helpers/engines.ts'
import { HeldRuns } from '../helpers/held_runs.ts'

const waits = (ctx: WorkflowCtx) => ctx.waitForSignal('go')

for (const kind of await storesUnderTest()) {
  test.group(`The run queue | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    function fleet() {
      const runs = new HeldRuns()
      const engine = (options: EngineOptions = {}) =>
        world.engine({ transport: runs.on(world.held.connect()), namespace: 'default', ...options })
      return { runs, engine }
    }

    test('a start is handed over, and executes nowhere until somebody takes it', async ({
      assert,
    }) => {
      const { runs, engine } = fleet()
      const web = engine({ drive: false })
      const worker = engine()
      for (const one of [web, worker]) one.register('w', '1', async () => 'done')
      await web.start('w', null, 'r', { priority: 7 })
      const message = await runs.next('r')
      await world.quiet()
      assert.equal(await world.status('r'), 'pending')
      assert.deepEqual(runs.sent, [{ scope: 'default', run: message }])
      const { namespace, reason, priority } = message
      assert.deepEqual(
        { namespace, reason, priority },
        { namespace: 'default', reason: 'start', priority: 7 }
      )
      await worker.runEnqueued(message)
      assert.equal(await world.output('r'), 'done')
    })

    test('a message that comes again, late or for nobody does nothing', async ({ assert }) => {
      const { engine } = fleet()
      const worker = engine()
      let bodies = 0
      worker.register('w', '1', async () => ++bodies)
      await worker.start('w', null, 'r')
      await worker.start('w', null, 'other', { namespace: 'other' })
      const startAt = world.time.now + 60_000
      await worker.start('w', null, 'parked', { namespace: 'other', startAt })
      await Promise.all([worker.runEnqueued('r'), worker.runEnqueued('r')])
      await world.ended('r')
      await worker.runEnqueued('r')
      await worker.runEnqueued('unknown')
      for (const foreign of ['other', 'parked']) await worker.runEnqueued(foreign)
      await world.quiet()
      assert.equal(bodies, 1)
      for (const [id, status] of [
        ['other', 'pending'],
        ['parked', 'suspended'],
      ]) {
        const run = await world.run(id)
        assert.equal(run.status, status)
        assert.notProperty(run, 'wakeRequestedAt')
      }
    })

    test('who drives nothing hands a signal over, and the run wakes without the message too', async ({
      assert,
    }) => {
      for (const isLost of [false, true]) {
        const id = `r-${isLost}`
        const { runs, engine } = fleet()
        const web = engine({ drive: false })
        const worker = engine()
        for (const one of [web, worker]) {
          one.register('w', '1', (ctx) => ctx.waitForSignal(`go ${id}`))
        }
        await worker.start('w', null, id)
        await runs.flow()
        await world.parked(id)
        const answer = await web.signal(`go ${id}`, 1)
        assert.deepInclude(answer, { runId: id, status: 'suspended' })
        const message = await runs.next(id)
        assert.equal(message.reason, 'resume')
        // What the message tells of was durable before it.
        assert.property(await world.run(id), 'wakeRequestedAt')
        if (isLost) await worker.resumeDueTimers()
        else await worker.runEnqueued(message)
        assert.equal(await world.output(id), 1)
      }
    })

    test('a signal is answered before the turn that it causes', async ({ assert }) => {
      const { runs, engine } = fleet()
      const worker = engine()
      const gate = deferred<string>()
      worker.register('w', '1', async (ctx) => {
        await ctx.waitForSignal('go')
        return ctx.localStep('work', () => gate.promise)
      })
      await worker.start('w', null, 'r')
      await runs.flow()
      await world.parked('r')
      const answer = await worker.signal('go', 1)
      assert.oneOf(answer?.status, ['suspended', 'running'])
      gate.resolve('done')
      assert.equal(await world.output('r'), 'done')
      assert.lengthOf(runs.sent, 1)
    })

    test('a run that executes elsewhere gets a durable wake request', async ({ assert }) => {
      const { runs, engine } = fleet()
      const [holder, other] = [engine(), engine()]
      const gate = deferred<void>()
      let turns = 0
      for (const one of [holder, other]) {
        one.register('w', '1', async (ctx) => {
          turns++
          await ctx.localStep('work', () => gate.promise)
          return waits(ctx)
        })
      }
      await holder.start('w', null, 'r')
      await holder.runEnqueued(await runs.next('r'))
      await until(() => turns === 1, 'the first turn')
      await other.runEnqueued('r')
      assert.property(await world.run('r'), 'wakeRequestedAt')
      gate.resolve()
      await world.parked('r')
      await other.signal('go', 2)
      assert.equal(await world.output('r'), 2)
    })

    test('what cannot be handed over begins here, or is found by a poll', async ({ assert }) => {
      const { runs, engine } = fleet()
      const web = engine({ drive: false })
      const worker = engine()
      for (const one of [web, worker]) one.register('w', '1', async () => 'done')
      runs.refuse = new Error('the broker is down')
      await worker.start('w', null, 'here')
      assert.equal(await world.output('here'), 'done')
      await web.start('w', null, 'r')
      await world.quiet()
      assert.equal(await world.status('r'), 'pending')
      await worker.runPending()
      assert.equal(await world.output('r'), 'done')
      assert.lengthOf(world.reports, 2)
    })

    test('children and later links are handed over, each in the namespace of its run', async ({
      assert,
    }) => {
      const { runs, engine } = fleet()
      const worker = engine()
      worker.register('child', '1', async (_, n: number) => n)
      worker.register('w', '1', async (ctx, n: number) =>
        n === 0 ? ctx.continueAsNew(1) : ctx.all('child', [1, 2])
      )
      await worker.start('w', 0, 'r')
      await until(async () => {
        await runs.flow()
        const last = await world.store.getRun('r~1')
        return last?.status === 'completed'
      }, 'the last link')
      const told = runs.sent.filter(({ run }) => run.reason === 'start')
      assert.deepEqual(
        told.map(({ run }) => run.runId),
        ['r', 'r~1', 'r~1.all.0.0', 'r~1.all.0.1']
      )
      assert.deepEqual([...new Set(told.map(({ scope }) => scope))], ['default'])
    })

    test('without a free turn the run goes to whoever has one', async ({ assert }) => {
      const { runs, engine } = fleet()
      const [full, free] = [engine({ turnSlots: 1 }), engine()]
      const gate = deferred<string>()
      for (const one of [full, free]) {
        one.register('busy', '1', (ctx) => ctx.localStep('work', () => gate.promise))
        one.register('w', '1', waits)
      }
      await free.start('w', null, 'r')
      await free.runEnqueued(await runs.next('r'))
      await world.parked('r')
      await full.start('busy', null, 'b')
      await full.runEnqueued(await runs.next('b'))
      await world.reached('b', 'running')
      await full.signal('go', 3)
      await free.runEnqueued(await runs.next('r'))
      assert.equal(await world.output('r'), 3)
      gate.resolve('done')
      assert.equal(await world.output('b'), 'done')
    })

    test('who drains takes nothing, and hands over what it is told', async ({ assert }) => {
      const { runs, engine } = fleet()
      const [leaving, staying] = [engine(), engine()]
      for (const one of [leaving, staying]) one.register('w', '1', waits)
      await staying.start('w', null, 'r')
      await staying.runEnqueued(await runs.next('r'))
      await world.parked('r')
      leaving.beginDrain()
      await until(() => runs.scopes().length === 1, 'the end of its consumption')
      await assert.rejects(() => leaving.runEnqueued('r'), /this one drains/)
      await leaving.signal('go', 4)
      await leaving.start('w', null, 'later')
      await runs.next('later')
      await staying.runEnqueued(await runs.next('r'))
      assert.equal(await world.output('r'), 4)
      await leaving.drain()
    })

    test('an engine of every namespace has a scope of its own', async ({ assert }) => {
      const { runs, engine } = fleet()
      const operator = engine({ namespace: undefined })
      operator.register('w', '1', async () => 'done')
      assert.deepEqual(runs.scopes(), ['*'])
      await operator.start('w', null, 'r', { namespace: 'eu' })
      await runs.next('r')
      assert.deepInclude(runs.sent[0], { scope: '*' })
      const scoped = engine({ namespace: 'us' })
      scoped.register('w', '1', async () => 'done')
      await scoped.start('w', null, 's', { namespace: 'eu' })
      await runs.next('s')
      assert.deepInclude(runs.sent[1], { scope: 'eu' })
    })

    test('consumption is registered once, and not where it makes no sense', async ({ assert }) => {
      const { runs, engine } = fleet()
      const one = engine()
      const stop = one.consumeRuns()
      assert.strictEqual(one.consumeRuns(), stop)
      assert.deepEqual(runs.scopes(), ['default'])
      await stop!()
      assert.deepEqual(runs.scopes(), [])
      assert.isUndefined(engine({ runDispatcher: { dispatch: () => {} } }).consumeRuns())
      assert.isUndefined(world.engine().consumeRuns())
      const web = engine({ drive: false })
      assert.deepEqual(runs.scopes(), [])
      assert.isFunction(web.consumeRuns())
      assert.deepEqual(runs.scopes(), ['default'])
    })

    test('a message without a run id is refused', async ({ assert }) => {
      const { engine } = fleet()
      const worker = engine()
      const wrongs: unknown[] = ['', {}, null, { runId: 3 }]
      for (const wrong of wrongs) {
        await assert.rejects(() => worker.runEnqueued(wrong as RunDispatch), InvalidArgumentError)
      }
    })
  })
}
