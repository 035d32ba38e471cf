/*
 * Bringing back a run whose child failed: the child is tried again with it, in whatever order operators
 * come, and a retry that succeeded in the child's place is taken instead.
 */
import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld, type World } from '../helpers/engines.ts'

/** A child that fails until it is repaired, and how often its body worked. */
function flaky() {
  const state = { broken: true, worked: 0 }
  const body = async (ctx: WorkflowCtx, n: number) =>
    ctx.localStep('work', () => {
      state.worked += 1
      if (state.broken && n > 0) throw new Error(`no ${n}`)
      return n
    })
  return { state, body }
}

for (const kind of await storesUnderTest()) {
  test.group(`Retries of parents | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    async function failed(engine: ReturnType<World['engine']>, workflow: string, id: string) {
      await engine.start(workflow, null, id)
      await world.reached(id, 'failed')
      await world.quiet()
    }

    test('a requeued parent tries its failed child again', async ({ assert }) => {
      const engine = world.engine()
      const { state, body } = flaky()
      engine.register('child', '1', body)
      engine.register('parent', '1', async (ctx) => {
        const first = await ctx.localStep('first', () => 1)
        return first + (await ctx.child<number>('child', 5))
      })
      await failed(engine, 'parent', 'p')
      state.broken = false
      assert.deepInclude(await engine.requeue('p'), { status: 'pending' })
      assert.equal(await world.output('p'), 6)
      assert.equal(await world.output('p.child.1'), 5)
      assert.equal(state.worked, 2)
      const { error } = await world.run('p')
      assert.isUndefined(error)
    }).tags(['@race-39', '@race-40', '@control-27'])

    test('a child that fails again fails its parent again, as often as it is tried', async ({
      assert,
    }) => {
      const engine = world.engine()
      const { state, body } = flaky()
      engine.register('child', '1', body)
      engine.register('parent', '1', async (ctx) => ctx.child('child', 5))
      await failed(engine, 'parent', 'p')
      for (const worked of [2, 3]) {
        await engine.requeue('p')
        await world.quiet()
        await world.reached('p', 'failed')
        assert.equal(state.worked, worked)
      }
      assert.deepInclude(await world.errorOf('p'), { message: 'child "p.child.0" failed: no 5' })
      state.broken = false
      await engine.requeue('p')
      assert.equal(await world.output('p'), 5)
    })

    test('a failure that the parent had caught stays, and its child is left alone', async ({
      assert,
    }) => {
      const engine = world.engine()
      const { state, body } = flaky()
      let fails = true
      engine.register('child', '1', body)
      engine.register('parent', '1', async (ctx) => {
        const caught = await ctx.child('child', 5).catch((error: Error) => error.message)
        await ctx.localStep('then', () => {
          if (fails) throw new Error('later')
        })
        return caught
      })
      await failed(engine, 'parent', 'p')
      fails = state.broken = false
      await engine.requeue('p')
      assert.equal(await world.output('p'), 'child "p.child.0" failed: no 5')
      assert.equal(state.worked, 1)
      assert.equal(await world.status('p.child.0'), 'failed')
    })

    test('parent and child converge in whatever order they are brought back', async ({
      assert,
    }) => {
      const [one, two] = [world.engine(), world.engine()]
      const { state, body } = flaky()
      for (const engine of [one, two]) {
        engine.register('child', '1', body)
        engine.register('parent', '1', async (ctx) => ctx.child('child', 5))
      }
      for (const id of ['a', 'b', 'c']) await failed(one, 'parent', id)
      state.broken = false
      await one.requeue('a.child.0')
      assert.equal(await world.output('a.child.0'), 5)
      await one.requeue('a')
      await one.requeue('b')
      await two.requeue('b.child.0')
      await Promise.all([one.requeue('c'), two.requeue('c.child.0'), two.requeue('c')])
      for (const engine of [one, two]) {
        await world.quiet()
        await engine.runPending()
      }
      for (const id of ['a', 'b', 'c']) assert.equal(await world.output(id), 5)
    }).tags(['@race-40', '@control-26'])

    test('of a fan the failed members are tried again, the others are kept', async ({ assert }) => {
      const engine = world.engine()
      const { state, body } = flaky()
      engine.register('child', '1', body)
      engine.register('parent', '1', async (ctx) => ctx.all('child', [0, 1, 0, 2]))
      await failed(engine, 'parent', 'p')
      assert.equal(state.worked, 4)
      state.broken = false
      await engine.requeue('p')
      assert.deepEqual(await world.output('p'), [0, 1, 0, 2])
      assert.equal(state.worked, 6)
    }).tags(['@race-39'])

    test('a retry with another input that succeeded is taken; the origin is not run again', async ({
      assert,
    }) => {
      const engine = world.engine()
      const { state, body } = flaky()
      engine.register('child', '1', body)
      engine.register('parent', '1', async (ctx) => ctx.child('child', 5))
      await failed(engine, 'parent', 'p')
      const retry = await engine.retryWithInput('p.child.0', -7)
      assert.equal(await world.output(retry!.runId), -7)
      await world.quiet()
      assert.equal(state.worked, 2)
      await engine.requeue('p')
      assert.equal(await world.output('p'), -7)
      assert.equal(state.worked, 2)
      assert.equal(await world.status('p.child.0'), 'failed')
    }).tags(['@race-41'])

    test('a retry of a run without a parent, or one that fails, leaves nothing behind', async ({
      assert,
    }) => {
      const engine = world.engine()
      const { body } = flaky()
      engine.register('child', '1', body)
      engine.register('parent', '1', async (ctx) => ctx.child('child', 5))
      await engine.start('child', 1, 'top')
      await failed(engine, 'parent', 'p')
      await world.ended('top')
      const good = await engine.retryWithInput('top', -1)
      const bad = await engine.retryWithInput('p.child.0', 9)
      for (const retry of [good, bad]) await world.ended(retry!.runId)
      await world.quiet()
      for (const token of ['child:top', 'child:p.child.0']) {
        assert.isNull(await world.store.takeBufferedSignal(token))
      }
    })
  })
}
