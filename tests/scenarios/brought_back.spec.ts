/*
 * Runs that failed or were stopped, as everybody else sees them: nothing but an operator brings them back,
 * whoever waits elsewhere hears of their end, and what they died of is gone with it.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const LEASE_MS = 30_000
const POLL_MS = 250

for (const kind of await storesUnderTest()) {
  test.group(`Brought back | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a failure is gone once the run is requeued, and does not come back', async ({
      assert,
    }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      let broken = true
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('work', () => {
          if (broken) throw new Error('broken')
        })
        await ctx.waitForSignal('go')
        return 'done'
      })
      await engine.start('w', null, 'r')
      await engine.runPending()
      assert.deepInclude(await world.errorOf('r'), { message: 'broken' })
      broken = false
      await engine.requeue('r')
      const requeued = await world.run('r')
      assert.equal(requeued.status, 'pending')
      assert.isUndefined(requeued.error)
      await engine.runPending()
      const parked = await world.parked('r')
      assert.isUndefined(parked.error)
      await engine.signal('go')
      const ended = await world.ended('r')
      assert.deepInclude(ended, { status: 'completed', output: 'done' })
      assert.isUndefined(ended.error)
    })

    test('an error that a row carries while its run lives is gone when the run parks or ends well', async ({
      assert,
    }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      engine.register('parks', '1', async (ctx) => ctx.waitForSignal('go'))
      engine.register('ends', '1', async () => 'done')
      engine.register('goes on', '1', async (ctx, n: number) => {
        if (n === 0) await ctx.continueAsNew(1)
        return 'done'
      })
      for (const workflow of ['parks', 'ends', 'goes on']) {
        await engine.start(workflow, 0, workflow)
        // Whoever brought it back before left it there.
        await world.store.updateRunIf(workflow, ['pending'], { error: { message: 'old' } })
        assert.deepInclude(await world.errorOf(workflow), { message: 'old' })
        await engine.runOne(workflow)
        await world.quiet()
        const run = await world.run(workflow)
        assert.equal(run.status, workflow === 'parks' ? 'suspended' : 'completed')
        assert.isUndefined(run.error, workflow)
      }
    })

    test('whoever waits for the end hears that another instance cancelled the run', async ({
      assert,
    }) => {
      const [waiting, running, cancelling] = [world.engine(), world.engine(), world.engine()]
      running.register('w', '1', async (ctx) => ctx.waitForSignal('go'))
      await running.start('w', null, 'r')
      await world.parked('r')
      const timers = world.time.pending
      const end = waiting.waitForRun('r', { terminal: true })
      await cancelling.cancel('r')
      await world.time.advance(POLL_MS)
      assert.deepInclude(await end, { runId: 'r', status: 'cancelled' })
      assert.deepInclude(await waiting.waitForRun('r', { terminal: true }), { status: 'cancelled' })
      assert.equal(world.time.pending, timers)
    })

    test('whoever waits for the end hears that another instance gave the run up', async ({
      assert,
    }) => {
      const options = { maxRecoveryAttempts: 0 }
      const [waiting, doomed, other] = [
        world.engine(),
        world.engine(options),
        world.engine(options),
      ]
      const begun = deferred<void>()
      doomed.register('w', '1', async (ctx) => {
        await ctx.localStep('work', () => {
          begun.resolve()
          return new Promise(() => {})
        })
      })
      await doomed.start('w', null, 'r')
      await begun.promise
      await world.crash(doomed)
      const end = waiting.waitForRun('r', { terminal: true })
      world.time.jump(LEASE_MS + 1)
      await other.recoverIncomplete()
      await world.time.advance(POLL_MS)
      const { status, error } = await end
      assert.equal(status, 'dead')
      assert.equal(error?.code, 'max_recovery_attempts')
    })

    for (const fails of [false, true]) {
      const how = fails ? 'fails' : 'completes'
      test(`a child that ${how} after its parent has failed leaves it failed; a requeue sees its end`, async ({
        assert,
      }) => {
        const engine = world.engine()
        let broken = true
        let bodies = 0
        engine.register('child', '1', async (ctx) => {
          const answer = await ctx.waitForSignal('child')
          if (fails) throw new Error('no child')
          return answer
        })
        engine.register('parent', '1', async (ctx) => {
          bodies += 1
          const child = ctx.child('child', null).catch((error: Error) => error.message)
          await ctx.localStep('work', () => {
            if (broken) throw new Error('broken')
          })
          return [await child]
        })
        await engine.start('parent', null, 'p')
        await world.reached('p', 'failed')
        await world.quiet()
        const failed = await world.run('p')
        const rows = await world.rows('p')
        assert.equal(failed.status, 'failed')
        const played = bodies
        await world.parked('p.child.0')
        await engine.signal('child', 'answer')
        await world.ended('p.child.0')
        await world.quiet()
        await engine.resumeDueTimers()
        await engine.runPending()
        await world.quiet()
        assert.deepEqual(await world.run('p'), failed)
        assert.deepEqual(await world.rows('p'), rows)
        assert.equal(bodies, played)
        broken = false
        assert.deepInclude(await engine.requeue('p'), { status: 'pending' })
        const expected = fails ? 'child "p.child.0" failed: no child' : 'answer'
        await world.quiet()
        assert.deepInclude(await world.run('p'), { status: 'completed', output: [expected] })
        assert.deepEqual(await world.store.listSignalWaiters(''), [])
      })
    }
  })
}
