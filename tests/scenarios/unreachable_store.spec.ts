/*
 * A store that refuses connections, at a start and in the middle of everything: callers hear of it,
 * nothing half-made is left, and everything goes on by itself afterwards.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Unreachable store | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a start rejects with the cause, and leaves no run behind', async ({ assert }) => {
      const engine = world.engine()
      let bodies = 0
      engine.register('w', '1', async () => void (bodies += 1))
      const cause = new Error('connect ECONNREFUSED 127.0.0.1:5432')
      world.gate(engine).down(cause)
      const error = await engine.start('w', null, 'r').catch((thrown: unknown) => thrown)
      assert.strictEqual(error, cause)
      world.gate(engine).up()
      await world.quiet()
      assert.isNull(await world.store.getRun('r'))
      assert.equal(bodies, 0)
      await engine.start('w', null, 'r')
      await world.ended('r')
      assert.equal(bodies, 1)
    }).tags(['@scenario-15'])

    test('a start whose insert was answered with an error but applied is a run like any other', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 'done')
      world.gate(engine).once('createRun', async (proceed) => {
        await proceed()
        throw new Error('connection reset')
      })
      assert.deepInclude(await engine.start('w', null, 'r'), { runId: 'r', status: 'pending' })
      await engine.runPending()
      assert.equal(await world.output('r'), 'done')
    })

    test('signals, cancels and polls reject with the cause and change nothing', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.waitForSignal('go'))
      await engine.start('w', null, 'r')
      await world.parked('r')
      world.gate(engine).down()
      for (const verb of [
        () => engine.signal('go', 1),
        () => engine.cancel('r'),
        () => engine.requeue('r'),
        () => engine.resume('r'),
        () => engine.runOne('r'),
        () => engine.runPending(),
        () => engine.resumeDueTimers(),
        () => engine.recoverIncomplete(),
        () => engine.getEvent('r', 'k'),
      ]) {
        await assert.rejects(verb, /ECONNREFUSED/)
      }
      world.gate(engine).up()
      assert.equal(await world.status('r'), 'suspended')
      await engine.signal('go', 2)
      assert.equal(await world.output('r'), 2)
    })

    test('a run caught by an outage at any call is finished afterwards, every step at least once', async ({
      assert,
    }) => {
      let moments = 0
      for (let k = 0; ; k++) {
        const engine = world.engine()
        const ran: string[] = []
        engine.handle('remote', (input) => input)
        engine.register('w', '1', async (ctx, n: number) => {
          const a = await ctx.localStep('a', () => (ran.push('a'), n))
          const b = await ctx.step<number>('remote', a)
          await ctx.setEvent('k', b)
          await ctx.sleep(1000)
          const c = await ctx.waitForSignal<number>(`go${k}`, { timeoutMs: 60_000 })
          return ctx.localStep('c', () => (ran.push('c'), a + b + c))
        })
        const id = `r${k}`
        await engine.start('w', 1, id)
        let hit = false
        const stop = world.gate(engine).watch(async ({ index, when }) => {
          // The whole outage lasts for one call: refused before it, or unanswered after it.
          if (index !== k) return
          hit = true
          throw new Error(when === 'before' ? 'ECONNREFUSED' : 'ECONNRESET')
        })
        let signalled = false
        for (let pass = 0; pass < 12; pass++) {
          await world.quiet()
          const run = await world.run(id)
          if (run.status === 'completed') break
          await world.time.advance(31_000)
          await engine.recoverIncomplete().catch(() => {})
          await engine.runPending().catch(() => {})
          await engine.resumeDueTimers().catch(() => {})
          // Sent again until it was taken, as a caller that hears of an error would.
          if (!signalled) signalled = await engine.signal(`go${k}`, 1).then(() => true, () => false) // prettier-ignore
        }
        stop()
        const run = await world.run(id)
        assert.containsSubset(run, { status: 'completed', output: 3 }, `outage at call ${k}`)
        assert.includeMembers(ran, ['a', 'c'])
        await world.crash(engine)
        if (!hit) break
        moments += 1
      }
      assert.isAbove(moments, 10)
    }).timeout(60_000)

    test('timers, results and signals of half a minute without a store are not lost', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => {
        const remote = ctx.step('remote', 1)
        await ctx.sleep(10_000)
        return [await remote, await ctx.localStep('after', () => 'after')]
      })
      await engine.start('w', null, 'r')
      const task = await world.held.task('remote')
      await world.parked('r')
      world.gate(engine).down()
      let accepted = false
      for (let second = 0; second < 30; second += 5) {
        await world.time.advance(5000)
        await assert.rejects(() => engine.resumeDueTimers())
        // A broker delivers again what was not acknowledged.
        accepted = await world.held.complete(task, 'answer').then(() => true, () => false) // prettier-ignore
        assert.isFalse(accepted)
      }
      world.gate(engine).up()
      await world.held.complete(task, 'answer')
      await engine.resumeDueTimers()
      assert.deepEqual(await world.output('r'), ['answer', 'after'])
    }).tags(['@scenario-5'])

    test('a turn whose lease could not be renewed in time writes nothing under a later one', async ({
      assert,
    }) => {
      const [cut, other] = [world.engine(), world.engine()]
      const gate = deferred<void>()
      const begun = deferred<void>()
      for (const engine of [cut, other]) {
        engine.register('w', '1', async (ctx) => {
          const who = await ctx.localStep('a', async () => {
            if (engine === cut) {
              begun.resolve()
              await gate.promise
            }
            return engine === cut ? 'cut off' : 'other'
          })
          await ctx.setEvent('who', who)
          return who
        })
      }
      await cut.start('w', null, 'r')
      await begun.promise
      await world.quiet()
      world.gate(cut).down()
      await world.time.advance(30_001)
      await other.recoverIncomplete()
      assert.equal(await world.output('r'), 'other')
      world.gate(cut).up()
      gate.resolve()
      await world.quiet()
      assert.deepInclude(await world.run('r'), { status: 'completed', output: 'other' })
      assert.equal(await cut.getEvent('r', 'who'), 'other')
      assert.notProperty(await world.run('r'), 'lockedBy')
    })
  })
}
