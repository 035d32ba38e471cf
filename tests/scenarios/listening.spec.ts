/*
 * Listeners of cancels: told of each run that this process cancels, whatever asked for it. And what is no
 * listener of anything.
 */
import { test } from '@japa/runner'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const [memory] = await storesUnderTest()

test.group('onCancel', (group) => {
  const world = useWorld(group, memory)

  test('is told of every cancelled run, children and timeouts included, until it is stopped', async ({
    assert,
  }) => {
    const engine = world.engine()
    engine.register('waits', '1', (ctx) => ctx.waitForSignal(ctx.runId))
    engine.register('short', '1', (ctx) => ctx.waitForSignal('never'), { executionTimeout: '1m' })
    engine.register('parent', '1', (ctx) => ctx.child('waits', null, 'child'))
    const heard: string[] = []
    engine.onCancel(() => {
      throw new Error('not me')
    })
    const stop = engine.onCancel((runId) => void heard.push(runId))
    await engine.start('parent', null, 'parent')
    await world.parked('parent')
    await engine.start('short', null, 'late')
    await world.parked('late')
    await engine.cancel('parent')
    await world.quiet()
    await world.time.advance(60_000)
    await engine.sweepTimeouts()
    await world.quiet()
    await engine.cancel('parent')
    assert.deepEqual(heard, ['parent', 'child', 'late'])
    stop()
    await engine.start('waits', null, 'other')
    await world.parked('other')
    await engine.cancel('other')
    assert.lengthOf(heard, 3)
    assert.equal(await world.status('child'), 'cancelled')
    assert.include(world.reports.map(String).join(), 'not me')
  })

  test('a cancel with undos is told of when it is asked for', async ({ assert }) => {
    const engine = world.engine({ transport: 'held' })
    const heard: string[] = []
    engine.register('saga', '1', async (ctx) => {
      await ctx.localStep('one', () => 1, { compensate: () => void heard.push('undone') })
      await ctx.waitForSignal('go')
    })
    engine.onCancel((runId) => void heard.push(runId))
    await engine.start('saga', null, 'r')
    await world.parked('r')
    await engine.cancel('r', { compensate: true })
    await world.ended('r')
    assert.deepEqual(heard, ['r', 'undone'])
  })
})

test.group('what is no listener', (group) => {
  const world = useWorld(group, memory)

  test('is refused by name', ({ assert }) => {
    const engine = world.engine()
    for (const verb of ['onCancel', 'onDead', 'onEvict', 'onStalled', 'subscribe'] as const) {
      assert.throws(
        () => engine[verb](undefined as never),
        `${verb}: the listener must be a function, got undefined`
      )
    }
  })
})
