/*
 * Cancelling with undos: the intent is durable, every end of the body honours it, and whoever drives the
 * run next finishes it.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'

/** Two undoable steps, a gate that the test opens, then one of several ends. */
function saga(undone: string[], end: (ctx: WorkflowCtx) => Promise<unknown>) {
  const reached = deferred<void>()
  const gate = deferred<void>()
  const body = async (ctx: WorkflowCtx) => {
    await ctx.localStep('one', () => 1, { compensate: () => void undone.push('one') })
    await ctx.localStep('two', () => 2, { compensate: () => void undone.push('two') })
    reached.resolve()
    await gate.promise
    return end(ctx)
  }
  return { body, reached: reached.promise, open: () => gate.resolve() }
}

const ENDS: Record<string, (ctx: WorkflowCtx) => Promise<unknown>> = {
  returns: async () => 'done',
  throws: async () => {
    throw new Error('by itself')
  },
  suspends: async (ctx) => ctx.waitForSignal('never'),
  sleeps: async (ctx) => ctx.sleep('1h'),
  continuesAsNew: async (ctx) => ctx.continueAsNew(null),
  worksOn: async (ctx) => ctx.localStep('three', () => 3),
}

for (const kind of await storesUnderTest()) {
  test.group(`Cancelling with undos | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a step that its process died with says so once the run is cancelled', async ({
      assert,
    }) => {
      const undone: string[] = []
      const begin = (work: () => Promise<void>) => {
        const engine = world.engine({ leaseMs: 30_000 })
        engine.register('w', '1', async (ctx) => {
          await ctx.localStep('one', () => 1, { compensate: () => void undone.push('one') })
          await ctx.localStep('two', work, { compensate: () => void undone.push('two') })
        })
        return engine
      }
      const doomed = begin(() => new Promise(() => {}))
      await doomed.start('w', null, 'r')
      await until(async () => {
        await world.time.advance(10)
        const [, row] = await world.rows('r')
        return row?.status === 'running'
      }, 'the beginning of the step')
      await world.crash(doomed)
      const next = begin(async () => assert.fail('it is begun again'))
      await next.cancel('r', { compensate: true })
      await world.time.advance(31_000)
      await next.recoverIncomplete()
      await next.runPending()
      const run = await world.ended('r')
      assert.equal(run.status, 'cancelled')
      assert.deepEqual(undone, ['one'])
      const [undo, one, two] = await world.rows('r')
      assert.deepEqual([undo.status, one.status, two.status], ['completed', 'completed', 'failed'])
      assert.match(two.error!.message, /cancelled before it ended/)
    })

    test('a turn under way undoes and ends cancelled, however its body ends', async ({
      assert,
    }) => {
      for (const [name, end] of Object.entries(ENDS)) {
        const engine = world.engine()
        const undone: string[] = []
        const { body, reached, open } = saga(undone, end)
        engine.register('w', '1', body)
        await engine.start('w', null, name)
        await reached
        const answer = await engine.cancel(name, { compensate: true })
        assert.equal(answer?.status, 'running', name)
        open()
        const run = await world.ended(name)
        assert.equal(run.status, 'cancelled', name)
        assert.deepEqual(run.error, { message: 'cancelled' })
        assert.deepEqual(undone, ['two', 'one'], name)
        await world.quiet()
        const { cancelRequestedAt } = await world.run(name)
        assert.isUndefined(cancelRequestedAt, name)
        assert.isNull(await world.store.getRun(`${name}~1`))
      }
    }).tags(['@race-14', '@control-56'])

    test('an intent that comes right before the settling write is honoured', async ({ assert }) => {
      const [engine, other] = [world.engine(), world.engine()]
      const undone: string[] = []
      const { body, open } = saga(undone, ENDS.returns)
      engine.register('w', '1', body)
      open()
      const request = () => other.cancel('r', { compensate: true })
      world.gate(engine).around('commitTurn', async (proceed, [commit]) => {
        if ((commit as { settle?: unknown }).settle) await request()
        return proceed()
      })
      await engine.start('w', null, 'r')
      assert.deepInclude(await world.ended('r'), { status: 'cancelled' })
      assert.deepEqual(undone, ['two', 'one'])
    })
      .tags(['@race-14', '@control-56'])
      .skip(
        !kind.complete,
        'without commitTurn a settle cannot look at the intent in its own statement'
      )

    test('a request for undos that got lost on its way is refused; the run lives on', async ({
      assert,
    }) => {
      const engine = world.engine()
      const undone: string[] = []
      const { body, open } = saga(undone, ENDS.suspends)
      engine.register('w', '1', body)
      open()
      await engine.start('w', null, 'r')
      await world.parked('r')
      const lost: [unknown, RegExp][] = [
        [true, /the options must be an object, such as { compensate: true }, got true/],
        ['compensate', /the options must be an object/],
        [null, /the options must be an object/],
        [{ compensate: 'true' }, /compensate must be a boolean, got "true"/],
        [{ compensate: 1 }, /compensate must be a boolean, got 1/],
        [{ compensates: true }, /"compensates" is no option; there are compensate and by/],
        [{ query: { compensate: true } }, /"query" is no option/],
        [{ by: 7 }, /by must be a string, got 7/],
      ]
      for (const [options, message] of lost) {
        await assert.rejects(() => engine.cancel('r', options as object), message)
        await assert.rejects(() => engine.cancelWhere({}, options as object), message)
        await world.quiet()
        assert.equal(await world.status('r'), 'suspended')
      }
      assert.deepEqual(undone, [])
      await engine.cancel('r', { compensate: true, by: undefined })
      await world.ended('r')
      assert.deepEqual(undone, ['two', 'one'])
    }).tags(['@control-57'])

    test('another engine that holds the run hears of the intent', async ({ assert }) => {
      const [holding, asking] = [world.engine(), world.engine()]
      const undone: string[] = []
      const { body, reached, open } = saga(undone, ENDS.returns)
      for (const engine of [holding, asking]) engine.register('w', '1', body)
      await holding.start('w', null, 'r')
      await reached
      await asking.cancel('r', { compensate: true, by: 'alice' })
      await world.quiet()
      assert.equal(await world.status('r'), 'running')
      open()
      const run = await world.ended('r')
      assert.deepInclude(run, { status: 'cancelled', cancelRequestedBy: 'alice' })
      assert.deepEqual(undone, ['two', 'one'])
    })

    test('a suspended run undoes at once, and starts no new work', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      const undone: string[] = []
      const { body, open } = saga(undone, async (ctx) => {
        await ctx.step('remote', 1).catch(() => {})
        await ctx.localStep('never', () => 0)
      })
      engine.register('w', '1', body)
      open()
      await engine.start('w', null, 'r')
      const task = await world.held.task('remote')
      await world.parked('r')
      const answer = await engine.cancel('r', { compensate: true })
      assert.equal(answer?.status, 'suspended')
      assert.deepInclude(await world.ended('r'), { status: 'cancelled' })
      assert.deepEqual(undone, ['two', 'one'])
      await world.held.complete(task, 'late')
      await world.quiet()
      assert.equal(await world.status('r'), 'cancelled')
      assert.notInclude(JSON.stringify(await world.timeline('r')), 'never')
      assert.lengthOf(world.held.sent, 1)
    })

    test('an engine that crashes while it undoes is finished by another', async ({ assert }) => {
      const [doomed, living] = [world.engine({ leaseMs: 1000 }), world.engine({ leaseMs: 1000 })]
      const undone: string[] = []
      const hang = deferred<void>()
      for (const engine of [doomed, living]) {
        engine.register('w', '1', async (ctx) => {
          await ctx.localStep('one', () => 1, { compensate: () => void undone.push('one') })
          await ctx.localStep('two', () => 2, {
            compensate: async () => {
              undone.push(engine === doomed ? 'two, hanging' : 'two')
              if (engine === doomed) await hang.promise
            },
          })
          await ctx.localStep('three', () => 3, { compensate: () => void undone.push('three') })
          await ctx.waitForSignal('never')
        })
      }
      await doomed.start('w', null, 'r')
      await world.parked('r')
      await doomed.cancel('r', { compensate: true })
      await world.quiet()
      assert.deepEqual(undone, ['three', 'two, hanging'])
      await world.crash(doomed)
      world.time.jump(1001)
      await living.recoverIncomplete()
      const run = await world.ended('r')
      assert.equal(run.status, 'cancelled')
      // What was undone stays so; what hung is undone again; nothing is forgotten.
      assert.deepEqual(undone, ['three', 'two, hanging', 'two', 'one'])
    }).tags(['@race-15'])

    test('an engine that crashes right after it was asked leaves the intent to others', async ({
      assert,
    }) => {
      const [doomed, living] = [world.engine(), world.engine()]
      const undone: string[] = []
      for (const engine of [doomed, living]) {
        const { body, open } = saga(undone, ENDS.suspends)
        engine.register('w', '1', body)
        open()
      }
      await living.start('w', null, 'r')
      await world.parked('r')
      world.gate(doomed).around('claimRun', async () => world.crash(doomed))
      world.gate(doomed).around('tryLockRun', async () => world.crash(doomed))
      await doomed.cancel('r', { compensate: true })
      await world.quiet()
      assert.equal(await world.status('r'), 'suspended')
      await living.resumeDueTimers()
      assert.deepInclude(await world.ended('r'), { status: 'cancelled' })
      assert.deepEqual(undone, ['two', 'one'])
    }).tags(['@race-15'])

    test('asking again, plainly or not, neither repeats nor skips the undos', async ({
      assert,
    }) => {
      const engine = world.engine()
      const undone: string[] = []
      const { body, reached, open } = saga(undone, ENDS.returns)
      engine.register('w', '1', body)
      await engine.start('w', null, 'r')
      await reached
      await engine.cancel('r', { compensate: true })
      await engine.cancel('r', { compensate: true })
      assert.deepInclude(await engine.cancel('r'), { status: 'running' })
      open()
      await world.ended('r')
      await world.quiet()
      assert.deepEqual(undone, ['two', 'one'])
      assert.deepEqual(await engine.cancel('r'), {
        runId: 'r',
        status: 'cancelled',
        error: { message: 'cancelled' },
      })
    })

    test('a run that never began has nothing to undo', async ({ assert }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      engine.register('w', '1', async () => 'done')
      await engine.start('w', null, 'pending')
      await engine.start('w', null, 'delayed', { startAt: world.time.now + 1000 })
      for (const id of ['pending', 'delayed']) {
        const answer = await engine.cancel(id, { compensate: true })
        assert.equal(answer?.status, 'cancelled')
      }
      world.time.jump(2000)
      await engine.runPending()
      await engine.resumeDueTimers()
      assert.equal(await world.status('pending'), 'cancelled')
      assert.equal(await world.status('delayed'), 'cancelled')
    })

    test('a run in backoff of a failed step undoes what it did', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      const undone: string[] = []
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('one', () => 1, { compensate: () => void undone.push('one') })
        await ctx.step('remote', 1, { retries: 3, backoffMs: 60_000 })
      })
      await engine.start('w', null, 'r')
      await world.held.fail(await world.held.task('remote'), 'once')
      await world.parked('r')
      await engine.cancel('r', { compensate: true })
      assert.deepInclude(await world.ended('r'), { status: 'cancelled' })
      assert.deepEqual(undone, ['one'])
      assert.lengthOf(world.held.sent, 1)
    })
  })
}
