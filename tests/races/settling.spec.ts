/*
 * What happens when something else decides about a run while a turn of it computes an outcome, and when
 * answers come for runs that are over.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'
import { beforeSettle } from '../helpers/settling.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Settling | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a cancel stands although the body completes, suspends or fails after it', async ({
      assert,
    }) => {
      const engine = world.engine()
      const events = world.eventsOf(engine)
      const ends = {
        completes: async () => 'done',
        suspends: async (ctx: { sleep(ms: number): Promise<void> }) => ctx.sleep(1000),
        fails: async () => {
          throw new Error('late')
        },
      }
      for (const [name, end] of Object.entries(ends)) {
        const gate = deferred<void>()
        const begun = deferred<void>()
        engine.register(name, '1', async (ctx) => {
          await ctx.localStep('work', async () => {
            begun.resolve()
            await gate.promise
          })
          return end(ctx)
        })
        await engine.start(name, null, name)
        await begun.promise
        assert.deepEqual(await engine.cancel(name), {
          runId: name,
          status: 'cancelled',
          error: { message: 'cancelled' },
        })
        gate.resolve()
        await world.quiet()
        const run = await world.run(name)
        assert.equal(run.status, 'cancelled', name)
        assert.isUndefined(run.output)
        assert.isUndefined(run.wakeAt)
        assert.deepEqual(run.error, { message: 'cancelled' })
        assert.deepEqual(
          events.filter((e) => e.runId === name && e.type !== 'run.started' && e.type.startsWith('run.')).map((e) => e.type), // prettier-ignore
          ['run.failed']
        )
      }
    }).tags(['@race-1', '@control-1'])

    test('a cancel between the last read of a turn and its settling write stands', async ({
      assert,
    }) => {
      for (const [runId, body] of [
        ['completing', async () => 'done'],
        ['suspending', async (ctx: { sleep(ms: number): Promise<void> }) => ctx.sleep(1000)],
      ] as const) {
        const engine = world.engine()
        const other = world.engine()
        const events = world.eventsOf(engine)
        engine.register('w', '1', body)
        beforeSettle(world.gate(engine), () => other.cancel(runId))
        await engine.start('w', null, runId)
        await world.ended(runId)
        await world.quiet()
        assert.equal(await world.status(runId), 'cancelled')
        assert.deepEqual(
          events.map((event) => event.type),
          ['run.started']
        )
        assert.notProperty(await world.run(runId), 'lockedBy')
      }
    }).tags(['@race-3', '@control-1'])

    test('a run declared dead while its turn runs stays dead', async ({ assert }) => {
      const engine = world.engine()
      const gate = deferred<void>()
      const begun = deferred<void>()
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('work', async () => {
          begun.resolve()
          await gate.promise
        })
      })
      await engine.start('w', null, 'r')
      await begun.promise
      await world.store.updateRunIf('r', ['running'], { status: 'dead', error: { message: 'x' } })
      gate.resolve()
      await world.quiet()
      const run = await world.run('r')
      assert.equal(run.status, 'dead')
      assert.deepEqual(run.error, { message: 'x' })
      // What had been done before nobody could know is not recorded under a run that is over.
      assert.notDeepInclude(await world.timeline('r'), [0, 'work', 'completed'])
    }).tags(['@race-1'])

    test('a late success of a failed run is kept for a retry and resumes nothing', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      let broken = true
      let bodies = 0
      engine.register('w', '1', async (ctx) => {
        bodies += 1
        const [, value] = await Promise.all([
          ctx.localStep('check', () => {
            if (broken) throw new Error('broken')
          }),
          ctx.step<string>('slow', 1),
        ])
        return value
      })
      await engine.start('w', null, 'r')
      const task = await world.held.task('slow')
      assert.deepInclude(await world.ended('r'), { status: 'failed' })

      await world.held.complete(task, 'late')
      await world.quiet()
      assert.equal(await world.status('r'), 'failed')
      assert.equal(bodies, 1)
      assert.deepInclude(await world.timeline('r'), [1, 'slow', 'completed'])

      broken = false
      await engine.requeue('r')
      const run = await world.ended('r')
      assert.deepInclude(run, { status: 'completed', output: 'late' })
      assert.equal(world.held.times('r:1'), 1)
    }).tags(['@scenario-20', '@race-6', '@control-5'])

    test('a late failure of a failed run resumes nothing, and a retry sends the step again', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      let broken = true
      engine.register('w', '1', async (ctx) => {
        const [, value] = await Promise.all([
          ctx.localStep('check', () => {
            if (broken) throw new Error('broken')
          }),
          ctx.step<string>('slow', 1),
        ])
        return value
      })
      await engine.start('w', null, 'r')
      const task = await world.held.task('slow')
      await world.ended('r')
      await world.held.fail(task, 'no')
      await world.quiet()
      const run = await world.run('r')
      assert.equal(run.status, 'failed')
      assert.equal(run.error?.message, 'broken')
      assert.equal(world.held.times('r:1'), 1)

      broken = false
      await engine.requeue('r')
      await world.held.complete(await world.held.task('slow', 2), 'again')
      assert.deepInclude(await world.ended('r'), { status: 'completed', output: 'again' })
    }).tags(['@scenario-20', '@race-6', '@control-6'])

    test('an answer that comes again after the end changes nothing', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      let bodies = 0
      engine.register('w', '1', async (ctx) => {
        bodies += 1
        return ctx.step<string>('once', 1)
      })
      await engine.start('w', null, 'r')
      const task = await world.held.task('once')
      await world.held.complete(task, 'first')
      await world.ended('r')
      const [turnsSoFar, { updatedAt }] = [bodies, await world.run('r')]
      world.time.jump(5000)
      await world.held.complete(task, 'second')
      await world.held.fail(task, 'third')
      await world.quiet()
      assert.deepInclude(await world.run('r'), { status: 'completed', output: 'first', updatedAt })
      assert.equal(bodies, turnsSoFar)
      assert.deepInclude(await world.store.getCheckpoint('r', 0), { output: 'first' })
    }).tags(['@scenario-20', '@race-7', '@control-8'])

    test('an answer that comes again wakes the run when its first receiver died half way', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.step<string>('once', 1))
      await engine.start('w', null, 'r')
      const task = await world.held.task('once')
      await world.parked('r')
      // All that the first receiver managed: the row, not the wake.
      await world.store.settleCheckpointsIfPending([
        {
          runId: 'r',
          seq: 0,
          status: 'completed',
          output: 'first',
          finishedAt: new Date(world.time.now),
        },
      ])
      assert.equal(await world.status('r'), 'suspended')
      await world.held.complete(task, 'again')
      assert.deepInclude(await world.ended('r'), { status: 'completed', output: 'first' })
    }).tags(['@race-8', '@control-7'])

    test('a signal resurrects no failed run, and its payload is kept for somebody else', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('dies', '1', async (ctx) => {
        await Promise.all([
          ctx.waitForSignal('go'),
          ctx.localStep('check', () => {
            throw new Error('broken')
          }),
        ])
      })
      engine.register('waits', '1', async (ctx) => ctx.waitForSignal('go'))
      await engine.start('dies', null, 'dead')
      await world.ended('dead')
      assert.isNull(await engine.signal('go', 7))
      await world.quiet()
      assert.equal(await world.status('dead'), 'failed')
      await engine.start('waits', null, 'alive')
      assert.equal(await world.output('alive'), 7)
    }).tags(['@race-10'])

    test('a retry clears the error at once, and so does completing', async ({ assert }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      let broken = true
      engine.register('w', '1', async (ctx) =>
        ctx.localStep('check', () => {
          if (broken) throw new Error('broken')
          return 'fine'
        })
      )
      await engine.start('w', null, 'r')
      await engine.runPending()
      assert.deepInclude(await world.errorOf('r'), { message: 'broken' })
      assert.deepEqual(await engine.requeue('r'), { runId: 'r', status: 'pending' })
      assert.isUndefined(await world.errorOf('r'))
      broken = false
      await engine.runPending()
      const run = await world.run('r')
      assert.deepInclude(run, { status: 'completed', output: 'fine' })
      assert.isUndefined(run.error)
    }).tags(['@race-11', '@control-29'])
  })
}
