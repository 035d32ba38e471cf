/*
 * `scopeReads`: to an engine of one namespace the runs of another do not exist, whatever it is asked; what
 * belongs to all of them, such as a singleton slot, still does.
 */
import { test } from '@japa/runner'
import type { EngineLogger } from '../../src/engine/deps.ts'
import { storesUnderTest, until, useWorld, withoutMembers } from '../helpers/engines.ts'

const RETRY_MS = 1_250

for (const kind of await storesUnderTest()) {
  if (!kind.complete) continue
  test.group(`Scoped reads | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    const tenant = (namespace: string) => world.engine({ namespace, scopeReads: true })

    test('no verb finds a run of another namespace, and none is changed', async ({ assert }) => {
      const [acme, globex] = [tenant('acme'), tenant('globex')]
      for (const engine of [acme, globex]) {
        engine.register('w', '1', (ctx) => ctx.waitForSignal(`go:${ctx.runId}`))
      }
      await acme.start('w', null, 'a')
      await globex.start('w', null, 'g')
      for (const id of ['a', 'g']) await world.parked(id)
      const before = await world.run('g')

      assert.isNull(await acme.getRun('g'))
      assert.isNull(await acme.getRunDetail('g'))
      assert.isNull(await acme.explainRun('g'))
      assert.deepEqual(await acme.waitingFor(['g']), {})
      const listed = await acme.listRuns()
      assert.deepEqual(
        listed.map(({ id }) => id),
        ['a']
      )
      assert.isEmpty(await acme.listRuns({ namespace: 'globex' }))
      assert.equal(await acme.countRuns(), 1)
      assert.deepEqual(await acme.runValueFacets('namespace'), [{ value: 'acme', count: 1 }])
      assert.isNull(await acme.cancel('g'))
      assert.isNull(await acme.requeue('g'))
      assert.isNull(await acme.retryWithInput('g', 1))
      assert.isNull(await acme.redispatchPending('g'))
      await assert.rejects(() => acme.resume('g'), 'run g not found')
      assert.isEmpty(
        await acme.cancelWhere({}).then((all) => all.filter(({ runId }) => runId === 'g'))
      )
      assert.equal(await acme.deleteRun('g'), 0)
      assert.equal(await acme.purgeRuns({ namespace: 'globex' }, { cancelLive: true }), 0)
      await assert.rejects(() => acme.start('w', null, 'g'))
      assert.deepEqual(await world.run('g'), before)

      await globex.signal('go:g', 'done')
      const end = await world.ended('g')
      assert.equal(end.output, 'done')
    })

    test('the runs of the namespace go on as ever', async ({ assert }) => {
      const engine = tenant('acme')
      engine.handle('s', () => 'stepped')
      engine.register('child', '1', async () => 'child')
      engine.register('w', '1', async (ctx) => {
        const stepped = await ctx.step('s', null)
        await ctx.sleep(1000)
        return [stepped, await ctx.child('child', null)]
      })
      await engine.start('w', null, 'a')
      await until(async () => {
        const rows = await world.rows('a')
        return rows.some(({ name }) => name === 'sleep')
      }, 'the run to sleep')
      await world.parked('a')
      await world.time.advance(1000)
      await engine.resumeDueTimers()
      const run = await world.ended('a')
      assert.deepEqual(run.output, ['stepped', 'child'])
      assert.deepEqual(await engine.waitForRun('a', { terminal: true }), {
        runId: 'a',
        status: 'completed',
        output: ['stepped', 'child'],
      })
      const again = await engine.start('w', null, 'a')
      assert.equal(again.status, 'completed')
    })

    test('a singleton slot is shared, its queue is counted by namespace', async ({ assert }) => {
      const [acme, globex] = [tenant('acme'), tenant('globex')]
      const singleton = { key: () => 'k', maxQueueDepth: 0 }
      for (const engine of [acme, globex]) {
        engine.register('w', '1', (ctx) => ctx.waitForSignal(`go:${ctx.runId}`), { singleton })
      }
      await acme.start('w', null, 'a')
      await world.parked('a')
      await globex.start('w', null, 'g')
      await world.parked('g')
      const waiting = await world.run('g')
      assert.notInclude(waiting.tags ?? [], 'durable:singleton:admitted')
      await assert.rejects(() => acme.start('w', null, 'a2'), /is full/)
      await acme.signal('go:a', 1)
      await world.ended('a')
      await globex.signal('go:g', 2)
      await until(async () => {
        await world.time.advance(RETRY_MS)
        await globex.resumeDueTimers()
        return (await world.status('g')) === 'completed'
      }, 'the slot to pass on')
      await world.ended('g')
    })
  })
}

const [memory] = await storesUnderTest()
test.group('Scoped reads | what cannot be', (group) => {
  const world = useWorld(group, memory)

  test('without a namespace there is nothing to keep to', ({ assert }) => {
    for (const namespace of [undefined, '']) {
      assert.throws(
        () => world.engine({ namespace, scopeReads: true }),
        'WorkflowEngine: scopeReads needs a namespace: without one there is nothing to keep to'
      )
    }
  })

  test('a store without withScope is told of once', async ({ assert }) => {
    const warned: string[] = []
    const logger: EngineLogger = { warn: (text) => warned.push(text), error: () => {} }
    const store = withoutMembers(world.store, ['withScope'])
    const engine = world.engine({ store, namespace: 'acme', scopeReads: true, logger })
    engine.register('w', '1', async () => 1)
    await engine.start('w', null, 'a')
    await world.ended('a')
    assert.lengthOf(warned, 1)
    assert.include(warned[0], 'this store has no StateStore.withScope')
  })
})
