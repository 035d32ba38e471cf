/*
 * Draining: no new work is picked up, work in flight and everything that follows from it is waited for,
 * within one budget.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'

const settledIn = (promise: Promise<unknown>) => {
  const state = { done: false }
  void promise.then(() => (state.done = true))
  return state
}

for (const kind of await storesUnderTest()) {
  test.group(`Draining | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('the turn in flight is waited for, and nothing new is picked up', async ({ assert }) => {
      const engine = world.engine()
      const gate = deferred<string>()
      engine.register('w', '1', async (ctx) => ctx.localStep('work', () => gate.promise))
      await engine.start('w', null, 'running')
      await world.reached('running', 'running')
      const drained = engine.drain(10_000)
      const state = settledIn(drained)
      await engine.start('w', null, 'later')
      assert.deepEqual(await engine.runPending(), [])
      assert.deepEqual(await engine.resumeDueTimers(), [])
      assert.deepEqual(await engine.recoverIncomplete(), [])
      assert.isNull(await engine.runOne('later'))
      assert.isTrue(engine.isDraining())
      await world.quiet()
      assert.isFalse(state.done)
      gate.resolve('done')
      await drained
      assert.equal(await world.status('running'), 'completed')
      assert.equal(await world.status('later'), 'pending')
      assert.notProperty(await world.run('later'), 'lockedBy')
    })

    test('the continuation of a run in flight is executed too, link after link', async ({
      assert,
    }) => {
      const engine = world.engine()
      const gate = deferred<void>()
      engine.register('w', '1', async (ctx, n: number) => {
        if (n === 0) await ctx.localStep('work', () => gate.promise)
        return n < 3 ? ctx.continueAsNew(n + 1) : n
      })
      await engine.start('w', 0, 'r')
      await world.reached('r', 'running')
      const drained = engine.drain(10_000)
      gate.resolve()
      await drained
      assert.deepInclude(await world.run('r~3'), { status: 'completed', output: 3 })
    }).tags(['@race-60', '@race-61', '@control-20'])

    test('a chain that never ends costs the whole budget, and its last link is kept', async ({
      assert,
    }) => {
      const engine = world.engine()
      let links = 0
      engine.register('hot', '1', async (ctx) => {
        links += 1
        return ctx.continueAsNew(null)
      })
      await engine.start('hot', null, 'r')
      await until(() => links > 2, 'the chain')
      const drained = engine.drain(1000)
      const state = settledIn(drained)
      const before = links
      await until(() => links > before + 2, 'links while draining')
      assert.isFalse(state.done)
      // It never comes to rest: time moves on without waiting for that.
      world.time.whenIdle = async () => {}
      await world.time.advance(1000)
      await drained
      await world.crash(engine)
      const [newest] = await world.store.listRuns({ idPrefix: 'r~' })
      assert.include(['pending', 'running', 'completed'], newest.status)
    })

    test('a signal that comes during the last turn is still acted on', async ({ assert }) => {
      const [engine, other] = [world.engine(), world.engine()]
      const gate = deferred<void>()
      for (const each of [engine, other]) {
        each.register('w', '1', async (ctx) => {
          await ctx.localStep('work', () => gate.promise)
          const first = await ctx.waitForSignal('go')
          return ctx.localStep('more', () => first)
        })
      }
      await engine.start('w', null, 'r')
      await world.reached('r', 'running')
      const drained = engine.drain(10_000)
      const arrived = deferred<void>()
      world.gate(engine).around('commitTurn', async (proceed, [commit]) => {
        const answer = await proceed()
        if ((commit as { waits?: unknown }).waits) {
          world.gate(engine).around('commitTurn', (go) => go())
          await other.signal('go', 'payload')
          arrived.resolve()
        }
        return answer
      })
      world.gate(engine).around('putSignalWaiter', async (proceed) => {
        await proceed()
        await other.signal('go', 'payload')
        arrived.resolve()
      })
      gate.resolve()
      await arrived.promise
      await drained
      assert.deepInclude(await world.run('r'), { status: 'completed', output: 'payload' })
    }).tags(['@race-60'])

    test('whoever waits for the slot of a run in flight is woken before it ends', async ({
      assert,
    }) => {
      const engine = world.engine()
      const body = async (ctx: WorkflowCtx) => ctx.waitForSignal(`leave:${ctx.runId}`)
      engine.register('guest', '1', body, { singleton: { key: () => 'k' } })
      for (const runId of ['a', 'b']) {
        world.time.jump(1)
        await engine.start('guest', null, runId)
        await world.parked(runId)
      }
      const gate = deferred<void>()
      const looks = deferred<void>()
      world.gate(engine).once('listRuns', async (proceed) => {
        looks.resolve()
        await gate.promise
        return proceed()
      })
      void engine.signal('leave:a', null)
      await looks.promise
      const drained = engine.drain(10_000)
      const state = settledIn(drained)
      await world.quiet()
      assert.isFalse(state.done)
      gate.resolve()
      await drained
      // It followed from the turn in flight, so it was let in.
      assert.lengthOf(await world.store.listSignalWaiters('leave:b'), 1)
    }).tags(['@control-19'])

    test('a cancel with undos under way is finished', async ({ assert }) => {
      const engine = world.engine()
      const undo = deferred<void>()
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('one', () => 1, { compensate: () => undo.promise })
        await ctx.waitForSignal('never')
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.cancel('r', { compensate: true })
      const drained = engine.drain(10_000)
      const state = settledIn(drained)
      await world.quiet()
      assert.isFalse(state.done)
      undo.resolve()
      await drained
      assert.equal(await world.status('r'), 'cancelled')
    }).tags(['@control-21'])

    test('nothing is called after the drain has ended', async ({ assert }) => {
      const engine = world.engine({ transport: 'held', continuations: {} })
      engine.register('w', '1', async (ctx) => {
        await ctx.waitForSignal('go')
        await ctx.step('remote', 1)
        await ctx.sleep(5000)
      })
      for (let i = 0; i < 5; i++) await engine.start('w', null, `r${i}`)
      for (let i = 0; i < 5; i++) void engine.signal('go')
      await engine.drain(10_000)
      await world.quiet()
      const calls = JSON.stringify([...world.gate(engine).calls])
      await world.time.advance(600_000)
      assert.equal(JSON.stringify([...world.gate(engine).calls]), calls)
    }).tags(['@race-60', '@control-22'])

    test('the budget ends the wait; the run is left to recovery', async ({ assert }) => {
      const engine = world.engine({ leaseMs: 60_000 })
      engine.register('w', '1', async (ctx) =>
        ctx.localStep('work', () => new Promise<string>(() => {}))
      )
      await engine.start('w', null, 'r')
      await world.reached('r', 'running')
      const drained = engine.drain(2000)
      const state = settledIn(drained)
      await world.time.advance(1999)
      assert.isFalse(state.done)
      await world.time.advance(1)
      await drained
      await world.crash(engine)
      world.time.jump(60_001)
      const next = world.engine()
      next.register('w', '1', async () => 'done')
      await next.recoverIncomplete()
      assert.equal(await world.output('r'), 'done')
    })

    test('time already spent comes off the budget, before the drain and during it', async ({
      assert,
    }) => {
      for (const [budget, early, late] of [
        [3000, 2000, 0],
        [3000, 0, 2000],
        [3000, 1000, 1000],
        [3000, Number.NaN, 2000],
        [3000, -5000, 2000],
      ]) {
        const engine = world.engine()
        engine.register('w', '1', async (ctx) => ctx.localStep('x', () => new Promise(() => {})))
        const id = `r${budget}:${early}:${late}`
        await engine.start('w', null, id)
        await world.reached(id, 'running')
        engine.beginDrain(early)
        const drained = engine.drain(budget)
        const state = settledIn(drained)
        engine.beginDrain(late)
        await world.time.advance(999)
        assert.isFalse(state.done, id)
        await world.time.advance(1)
        await drained
        await world.crash(engine)
      }
    }).tags(['@race-62'])

    if (kind.complete) {
      test('a drain that begins while a pass claims waits for the runs that the pass gets', async ({
        assert,
      }) => {
        const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
        engine.register('w', '1', async () => 'done')
        await engine.start('w', null, 'r')
        const answer = deferred<void>()
        world.gate(engine).once('claimDueRuns', async (proceed) => {
          const claimed = await proceed()
          await answer.promise
          return claimed
        })
        void engine.runPending()
        await world.reached('r', 'running')
        const state = settledIn(engine.drain())
        await world.quiet()
        assert.isFalse(state.done)
        answer.resolve()
        assert.equal(await world.output('r'), 'done')
        await world.quiet()
        assert.isTrue(state.done)
      })
    }

    test('draining an idle engine ends at once, as often as it is asked', async ({ assert }) => {
      const engine = world.engine()
      await Promise.all([engine.drain(), engine.drain()])
      await engine.drain(0)
      assert.isTrue(engine.isDraining())
    })
  })
}
