/*
 * Execution timeouts: a run whose time is up ends as a cancelled one does, whatever it is doing, and takes
 * its children along.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import { FatalError } from '../../src/errors.ts'
import { runTick } from '../../src/loop/tick.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { WorkflowRun } from '../../src/types/run.ts'
import { storesUnderTest, T0, useWorld } from '../helpers/engines.ts'

const MINUTE = 60_000
const TIMED_OUT = { message: 'execution timeout', code: 'execution_timeout' }
const deadlineOf = ({ deadlineAt }: WorkflowRun) => deadlineAt
const wait = async (ctx: WorkflowCtx) => ctx.waitForSignal(`never:${ctx.runId}`)

for (const kind of await storesUnderTest()) {
  test.group(`Execution timeouts | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a timed-out run takes its children along, recursively, and spares those that ended', async ({
      assert,
    }) => {
      const engine = world.engine()
      const events = world.eventsOf(engine)
      engine.register('leaf', '1', wait)
      engine.register('quick', '1', async () => 'done')
      engine.register('middle', '1', async (ctx) => ctx.child('leaf', null))
      const top = async (ctx: WorkflowCtx) => {
        await ctx.child('quick', null, 'q')
        await ctx.startChild('leaf', null, 'forgotten')
        await ctx.child('middle', null, 'm')
      }
      engine.register('top', '1', top, { executionTimeout: '2m' })
      await engine.start('top', null, 't')
      await world.parked('m.child.0')
      await world.parked('t')
      await world.time.advance(2 * MINUTE - 1)
      await engine.sweepTimeouts()
      assert.equal(await world.status('t'), 'suspended')
      // Past the pause between two listings by age.
      await world.time.advance(MINUTE)
      await engine.sweepTimeouts()
      await world.quiet()
      for (const id of ['t', 'm', 'm.child.0', 'forgotten']) {
        assert.equal(await world.status(id), 'cancelled', id)
        const { cancelRequestedAt } = await world.run(id)
        assert.isUndefined(cancelRequestedAt, id)
      }
      assert.equal(await world.status('q'), 'completed')
      assert.deepEqual(await world.errorOf('t'), TIMED_OUT)
      assert.deepEqual(await world.errorOf('m'), { message: 'cancelled' })
      assert.deepEqual(await world.store.listSignalWaiters(''), [])
      const failed = events.filter(({ type }) => type === 'run.failed').map(({ runId }) => runId)
      assert.sameMembers(failed, ['t', 'm', 'm.child.0', 'forgotten'])
    }).tags(['@race-12'])

    test('runs that wait for each other end when the time of one is up', async ({ assert }) => {
      const engine = world.engine()
      const ring: Record<string, string> = { a: 'b', b: 'c', c: 'a' }
      const next = async (ctx: WorkflowCtx) =>
        ctx.child(`w${ring[ctx.runId]}`, null, ring[ctx.runId])
      for (const name of ['wa', 'wc']) engine.register(name, '1', next)
      engine.register('wb', '1', next, { executionTimeout: MINUTE })
      await engine.start('wa', null, 'a')
      for (const id of ['a', 'b', 'c']) await world.parked(id)
      await world.time.advance(MINUTE)
      await engine.sweepTimeouts()
      for (const id of ['a', 'b', 'c']) await world.ended(id)
      await world.quiet()
      assert.deepEqual(await world.errorOf('b'), TIMED_OUT)
      assert.equal(await world.status('c'), 'cancelled')
    }).tags(['@race-12'])

    test('a run that ends while a sweep comes to it stays as it ended', async ({ assert }) => {
      const engine = world.engine()
      const body = async (ctx: WorkflowCtx) => ctx.waitForSignal('go')
      engine.register('w', '1', body, { executionTimeout: '1m' })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await world.time.advance(2 * MINUTE)
      const events = world.eventsOf(engine)
      // The sweep has listed it by then, and its write of the end is the next thing.
      world.gate(engine).once('updateRunIf', async (proceed) => {
        await engine.signal('go', 'in time')
        return proceed()
      })
      await engine.sweepTimeouts()
      await world.quiet()
      assert.containsSubset(await world.run('r'), { status: 'completed', output: 'in time' })
      assert.deepEqual(
        events.filter(({ type }) => type === 'run.failed'),
        []
      )
    }).tags(['@control-3', '@race-4'])

    test('the turn under way is refused, nothing is undone, and the parent hears of it', async ({
      assert,
    }) => {
      const engine = world.engine({ leaseMs: 10 * MINUTE })
      const events = world.eventsOf(engine)
      const undone: string[] = []
      const reached = deferred<void>()
      const gate = deferred<void>()
      const slow = async (ctx: WorkflowCtx) => {
        await ctx.localStep('one', () => 1, { compensate: () => void undone.push('one') })
        reached.resolve()
        await gate.promise
        return 'too late'
      }
      engine.register('slow', '1', slow, { executionTimeout: MINUTE })
      engine.register('parent', '1', async (ctx) => ctx.child('slow', null, 's'))
      await engine.start('parent', null, 'p')
      await reached.promise
      await world.time.advance(MINUTE)
      await engine.sweepTimeouts()
      gate.resolve()
      const parent = await world.ended('p')
      assert.equal(parent.error?.code, 'execution_timeout')
      assert.include(parent.error?.message, 'child "s" failed: execution timeout')
      await world.quiet()
      assert.equal(await world.status('s'), 'cancelled')
      assert.deepEqual(await world.errorOf('s'), TIMED_OUT)
      assert.deepEqual(undone, [])
      assert.isFalse(events.some(({ type, runId }) => type === 'run.completed' && runId === 's'))
    }).tags(['@race-1', '@control-1'])

    test('the budget is of the version of the run, and runs from its start', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', wait, { executionTimeout: '10m' })
      engine.register('w', '2', wait, { executionTimeout: '1m' })
      engine.register('free', '1', wait)
      await engine.start('w', null, 'long', { version: '1' })
      await engine.start('w', null, 'short')
      await engine.start('w', null, 'delayed', { startAt: T0 + 5 * MINUTE })
      await engine.start('free', null, 'free')
      for (const id of ['long', 'short', 'free']) await world.parked(id)
      const deadlines = await Promise.all(
        ['long', 'short', 'delayed', 'free'].map((id) => world.run(id).then(deadlineOf))
      )
      assert.deepEqual(deadlines, [T0 + 10 * MINUTE, T0 + MINUTE, T0 + 6 * MINUTE, undefined])
      await world.time.advance(2 * MINUTE)
      await engine.sweepTimeouts()
      assert.equal(await world.status('short'), 'cancelled')
      for (const id of ['long', 'delayed', 'free'])
        assert.equal(await world.status(id), 'suspended')
      await world.time.advance(8 * MINUTE)
      await engine.sweepTimeouts()
      for (const id of ['long', 'delayed']) assert.equal(await world.status(id), 'cancelled')
      assert.equal(await world.status('free'), 'suspended')
    })

    test('a continuation and a run that is brought back have the whole budget again', async ({
      assert,
    }) => {
      const engine = world.engine()
      let broken = true
      const body = async (ctx: WorkflowCtx, link: number): Promise<unknown> => {
        await ctx.waitForSignal('go')
        if (link === 0) return ctx.continueAsNew(1)
        if (broken) throw new FatalError('broken')
        return wait(ctx)
      }
      engine.register('w', '1', body, { executionTimeout: '5m' })
      await engine.start('w', 0, 'r')
      await world.parked('r')
      await world.time.advance(3 * MINUTE)
      await engine.signal('go')
      await world.parked('r~1')
      assert.equal(await world.run('r~1').then(deadlineOf), T0 + 8 * MINUTE)
      await engine.signal('go')
      await world.reached('r~1', 'failed')
      broken = false
      await world.time.advance(20 * MINUTE)
      await engine.requeue('r~1')
      await world.parked('r~1')
      assert.equal(await world.run('r~1').then(deadlineOf), T0 + 28 * MINUTE)
      await engine.sweepTimeouts()
      assert.equal(await world.status('r~1'), 'suspended')
    })

    test('a run without a deadline is judged by its age', async ({ assert }) => {
      const before = world.engine()
      before.register('w', '1', wait)
      await before.start('w', null, 'old')
      await world.parked('old')
      const engine = world.engine()
      engine.register('w', '1', wait, { executionTimeout: '2m' })
      await engine.start('w', null, 'new')
      await world.time.advance(2 * MINUTE - 1)
      await engine.sweepTimeouts()
      assert.equal(await world.status('old'), 'suspended')
      await world.time.advance(1)
      await engine.sweepTimeouts()
      assert.equal(await world.status('old'), 'suspended', 'a minute between two listings')
      await world.time.advance(MINUTE)
      await engine.sweepTimeouts()
      assert.deepEqual(await world.errorOf('old'), TIMED_OUT)
      assert.equal(await world.status('new'), 'cancelled')
    })

    test('a singleton slot of a timed-out run goes to the one that waits', async ({ assert }) => {
      const engine = world.engine()
      const options = { singleton: { key: () => 'k' } }
      engine.register('w', '1', wait, { ...options, executionTimeout: '1m' })
      await engine.start('w', null, 'a')
      await world.parked('a')
      await world.time.advance(1)
      engine.register('w', '1', wait, options)
      await engine.start('w', null, 'b')
      await world.parked('b')
      engine.register('w', '1', wait, { ...options, executionTimeout: '1m' })
      await world.time.advance(MINUTE - 1)
      await engine.sweepTimeouts()
      assert.equal(await world.status('a'), 'cancelled')
      await world.quiet()
      assert.lengthOf(await world.store.listSignalWaiters('never:b'), 1)
    }).tags(['@control-17'])

    test('only the runs of its own pool are ended, and none while it drains', async ({
      assert,
    }) => {
      const engine = world.engine({ namespace: 'acme' })
      engine.register('w', '1', wait, { executionTimeout: MINUTE })
      await engine.start('w', null, 'mine')
      await world.parked('mine')
      await engine.start('w', null, 'theirs', { namespace: 'globex' })
      await world.time.advance(2 * MINUTE)
      engine.beginDrain()
      await engine.sweepTimeouts()
      assert.equal(await world.status('mine'), 'suspended')
      const next = world.engine({ namespace: 'acme' })
      next.register('w', '1', wait, { executionTimeout: MINUTE })
      const { errors } = await runTick(next)
      assert.deepEqual(errors, [])
      assert.equal(await world.status('mine'), 'cancelled')
      assert.equal(await world.status('theirs'), 'pending')
    })

    test('undos that were asked for are finished, however late', async ({ assert }) => {
      const engine = world.engine({ leaseMs: 10 * MINUTE })
      const undoing = deferred<void>()
      const gate = deferred<void>()
      const body = async (ctx: WorkflowCtx) => {
        const compensate = async () => {
          undoing.resolve()
          await gate.promise
        }
        await ctx.localStep('one', () => 1, { compensate })
        await ctx.waitForSignal('never')
      }
      engine.register('w', '1', body, { executionTimeout: MINUTE })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.cancel('r', { compensate: true })
      await undoing.promise
      await world.time.advance(2 * MINUTE)
      await engine.sweepTimeouts()
      assert.equal(await world.status('r'), 'running')
      gate.resolve()
      await world.ended('r')
      assert.deepEqual(await world.errorOf('r'), { message: 'cancelled' })
    })

    test('a process without timed workflows asks the store nothing', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', wait)
      await world.quiet()
      const before = [...world.gate(engine).calls.values()].reduce((sum, n) => sum + n, 0)
      await engine.sweepTimeouts()
      const after = [...world.gate(engine).calls.values()].reduce((sum, n) => sum + n, 0)
      assert.equal(after, before)
    })

    test('a run that cannot be ended does not stop the others', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', wait, { executionTimeout: MINUTE })
      for (const id of ['a', 'b', 'c']) {
        await engine.start('w', null, id)
        await world.parked(id)
      }
      await world.time.advance(MINUTE)
      const stop = world.gate(engine).around('updateRunIf', async (proceed, [runId]) => {
        if (runId === 'b') throw new Error('not now')
        return proceed()
      })
      await engine.sweepTimeouts()
      stop()
      const statuses = await Promise.all(['a', 'b', 'c'].map((id) => world.status(id)))
      assert.deepEqual(statuses, ['cancelled', 'suspended', 'cancelled'])
      assert.lengthOf(world.reports, 1)
      await world.time.advance(MINUTE)
      await engine.sweepTimeouts()
      assert.equal(await world.status('b'), 'cancelled')
    })
  })
}
