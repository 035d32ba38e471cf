/*
 * Undoing: which steps, in which order, with what, and what a failing undo changes.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Undoing | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('what completed is undone, highest position first, in any turn', async ({ assert }) => {
      const engine = world.engine()
      const undone: string[] = []
      const undo = (name: string) => ({ compensate: () => void undone.push(name) })
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1, undo('a'))
        await ctx.waitForSignal('go')
        await Promise.all([
          ctx.localStep('slow', () => new Promise(setImmediate), undo('slow')),
          ctx.localStep('fast', () => 1, undo('fast')),
        ])
        await ctx.localStep('no undo', () => 1)
        await ctx.localStep('fails', () => Promise.reject(new Error('no')), undo('fails'))
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.signal('go')
      const run = await world.ended('r')
      assert.containsSubset(run, {
        status: 'failed',
        error: { message: 'no', step: { name: 'fails', seq: 5 } },
      })
      assert.deepEqual(undone, ['fast', 'slow', 'a'])
      assert.deepEqual(await world.timeline('r', 3), [
        [-3, 'compensate:a', 'completed'],
        [-2, 'compensate:slow', 'completed'],
        [-1, 'compensate:fast', 'completed'],
      ])
    })

    test('a step whose result the body never saw is undone too', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => {
        await Promise.all([
          ctx.step('a', 1, { compensate: 'undo a' }),
          ctx.step('b', 2, { compensate: 'undo b' }),
          ctx.step('c', 3, { compensate: 'undo c' }),
        ])
      })
      await engine.start('w', null, 'r')
      const b = await world.held.task('b')
      await world.parked('r')
      // It lands when the body has failed and its undoing begins.
      world.gate(engine).once('listCheckpoints', async (proceed) => {
        await world.store.settleCheckpointsIfPending([
          { runId: 'r', seq: 0, status: 'completed', output: 'A', finishedAt: new Date(0) },
        ])
        return proceed()
      })
      await world.held.fail(b, 'b failed')
      const undo = await world.held.task('undo a')
      assert.deepEqual(undo.input, { input: 1, output: 'A' })
      await world.held.complete(undo)
      assert.containsSubset(await world.ended('r'), {
        status: 'failed',
        error: { message: 'b failed' },
      })
      assert.notInclude(
        world.held.sent.map((task) => task.name),
        'undo c'
      )
    })

    test('a body that returns, continues as new or is cancelled plainly undoes nothing', async ({
      assert,
    }) => {
      const engine = world.engine()
      const undone: string[] = []
      engine.register('w', '1', async (ctx, how: string) => {
        await ctx.localStep('a', () => 1, { compensate: () => void undone.push(how) })
        if (how === 'continues') return ctx.continueAsNew('returns')
        if (how === 'waits') await ctx.waitForSignal('never')
        return how
      })
      for (const how of ['returns', 'continues', 'waits']) await engine.start('w', how, how)
      await world.parked('waits')
      await engine.cancel('waits')
      await world.ended('continues~1')
      await world.quiet()
      assert.deepEqual(undone, [])
    })

    test('a failure that the body caught undoes nothing until the body fails', async ({
      assert,
    }) => {
      const engine = world.engine()
      const undone: string[] = []
      engine.register('w', '1', async (ctx, fails: boolean) => {
        await ctx.localStep('a', () => 1, { compensate: () => void undone.push('a') })
        await ctx.localStep('b', () => Promise.reject(new Error('caught'))).catch(() => {})
        if (fails) throw new Error('in the end')
        return 'fine'
      })
      await engine.start('w', false, 'fine')
      await world.ended('fine')
      assert.deepEqual(undone, [])
      await engine.start('w', true, 'fails')
      assert.containsSubset(await world.ended('fails'), { error: { message: 'in the end' } })
      assert.deepEqual(undone, ['a'])
    })

    test('an undo that fails is tried as often as allowed, skipped, and masks nothing', async ({
      assert,
    }) => {
      const engine = world.engine({ compensationRetries: 3 })
      const events = world.eventsOf(engine)
      const undone: string[] = []
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1, { compensate: () => void undone.push('a') })
        await ctx.localStep('b', () => 1, {
          compensate: () => {
            undone.push('b')
            throw new Error('undo of b')
          },
        })
        let tries = 0
        await ctx.localStep('c', () => 1, {
          compensate: () => {
            undone.push('c')
            tries += 1
            if (tries < 3) throw new Error('not yet')
          },
        })
        throw new Error('the reason')
      })
      await engine.start('w', null, 'r')
      await world.reached('r', 'running', 'failed')
      for (let i = 0; i < 10 && (await world.status('r')) === 'running'; i++) {
        await world.time.advance(10)
      }
      assert.containsSubset(await world.ended('r'), { error: { message: 'the reason' } })
      assert.deepEqual(undone, ['c', 'c', 'c', 'b', 'b', 'b', 'a'])
      assert.deepInclude(await world.timeline('r'), [-2, 'compensate:b', 'failed'])
      assert.deepInclude(await world.timeline('r'), [-1, 'compensate:c', 'completed'])
      const outcomes = events
        .filter((event) => event.name?.startsWith('compensate:') && event.type !== 'step.started')
        .map((event) => `${event.name} ${event.type} ${event.kind}`)
      assert.deepEqual(outcomes, [
        'compensate:c step.completed local',
        'compensate:b step.failed local',
        'compensate:a step.completed local',
      ])
    })

    test('a dispatched undo gets input and output, under the route of its run and its own policy', async ({
      assert,
    }) => {
      const release = defineStep('release', async (_: unknown) => {}, {
        retries: 2,
        backoffMs: 500,
      })
      const engine = world.engine({ transport: 'held', namespace: 'blue' })
      engine.register('w', '1', async (ctx) => {
        await ctx.step('reserve', { seat: 1 }, { compensate: release as never, retries: 9 })
        throw new Error('no')
      })
      await engine.start('w', null, 'r')
      await world.held.complete(await world.held.task('reserve'), { id: 7 })
      const first = await world.held.task('release')
      assert.deepInclude(first, {
        input: { input: { seat: 1 }, output: { id: 7 } },
        group: 'release@blue',
        seq: -1,
        attempt: 1,
      })
      await world.held.fail(first, 'busy')
      await world.quiet()
      await world.time.advance(499)
      assert.equal(world.held.sent.filter((task) => task.name === 'release').length, 1)
      await world.time.advance(1)
      const second = await world.held.task('release', 2)
      assert.equal(second.attempt, 2)
      assert.notEqual(second.stepId, first.stepId)
      // A late answer to the first attempt decides nothing.
      await world.held.complete(first)
      await world.quiet()
      assert.equal(await world.status('r'), 'running')
      await world.held.complete(second)
      assert.containsSubset(await world.ended('r'), {
        status: 'failed',
        error: { message: 'no' },
      })
    })

    test('an undo that nobody answers is given up after its time', async ({ assert }) => {
      const engine = world.engine({ transport: 'held', compensationTimeoutMs: 5000 })
      const undone: string[] = []
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1, { compensate: () => void undone.push('a') })
        await ctx.step('reserve', 1, { compensate: 'release' })
        throw new Error('no')
      })
      await engine.start('w', null, 'r')
      await world.held.complete(await world.held.task('reserve'))
      await world.held.task('release')
      await world.quiet()
      await world.time.advance(4000)
      assert.deepEqual(undone, [])
      await world.time.advance(2000)
      assert.containsSubset(await world.ended('r'), { error: { message: 'no' } })
      assert.deepEqual(undone, ['a'])
      const row = await world.store.getCheckpoint('r', -1)
      assert.containsSubset(row, { status: 'failed', error: { code: 'remote_step_timeout' } })
    })

    test('the answer of an undo that another engine received is found', async ({ assert }) => {
      const undoing = world.engine({ transport: 'held' })
      const receiving = world.engine({ transport: 'held' })
      undoing.register('w', '1', async (ctx) => {
        await ctx.step('reserve', 1, { compensate: 'release' })
        throw new Error('no')
      })
      await undoing.start('w', null, 'r')
      await world.held.complete(await world.held.task('reserve'), 'x', world.port(undoing))
      await world.held.complete(await world.held.task('release'), 'y', world.port(receiving))
      await world.quiet()
      await world.time.advance(1000)
      assert.containsSubset(await world.ended('r'), { status: 'failed' })
      assert.deepInclude(await world.timeline('r'), [-1, 'compensate:reserve', 'completed'])
    })

    test('a crash in the middle of undoing repeats only the undo that was under way', async ({
      assert,
    }) => {
      const [doomed, living] = [world.engine(), world.engine()]
      const undone: string[] = []
      const hanging = deferred<void>()
      for (const engine of [doomed, living]) {
        engine.register('w', '1', async (ctx) => {
          for (const name of ['a', 'b', 'c']) {
            await ctx.localStep(name, () => 1, {
              compensate: async () => {
                undone.push(name)
                if (name === 'b' && engine === doomed) {
                  hanging.resolve()
                  await new Promise(() => {})
                }
              },
            })
          }
          throw new Error('no')
        })
      }
      await doomed.start('w', null, 'r')
      await hanging.promise
      await world.quiet()
      await world.crash(doomed)
      world.time.jump(30_001)
      await living.recoverIncomplete()
      assert.containsSubset(await world.ended('r'), { error: { message: 'no' } })
      assert.deepEqual(undone, ['c', 'b', 'b', 'a'])
    })

    test('a requeued run that fails again undoes again', async ({ assert }) => {
      const engine = world.engine()
      const undone: string[] = []
      let failing = 'first'
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1, { compensate: () => void undone.push(`a ${failing}`) })
        await ctx.localStep('b', () => {
          if (failing === 'first') throw new Error('first')
        })
        await ctx.localStep('c', () => 1, { compensate: () => void undone.push(`c ${failing}`) })
        throw new Error('second')
      })
      await engine.start('w', null, 'r')
      await world.ended('r')
      assert.deepEqual(undone, ['a first'])
      failing = 'second'
      await engine.requeue('r')
      await world.reached('r', 'failed')
      await world.quiet()
      assert.containsSubset(await world.ended('r'), { error: { message: 'second' } })
      assert.deepEqual(undone, ['a first', 'c second', 'a second'])
      assert.deepEqual(await world.timeline('r', 2), [
        [-2, 'compensate:a', 'completed'],
        [-1, 'compensate:c', 'completed'],
      ])
    })

    test('an undo may not call the workflow context', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1, {
          compensate: async () => {
            await ctx.localStep('nested', () => 1)
          },
        })
        throw new Error('no')
      })
      await engine.start('w', null, 'r')
      assert.containsSubset(await world.ended('r'), { error: { message: 'no' } })
      const row = await world.store.getCheckpoint('r', -1)
      assert.containsSubset(row, { status: 'failed', error: { code: 'nested_workflow_call' } })
    })
  })
}
