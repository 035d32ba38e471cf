/*
 * Looking at runs: detail, fans, children, what they wait for, facets. What a store counts equals what is
 * counted from the rows.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import { InvalidArgumentError } from '../../src/errors.ts'
import { pageFanFromStore, summarizeRunFromStore } from '../../src/insight/fan_reads.ts'
import { pageFan, summarizeTimeline } from '../../src/insight/fans.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import type { RunValueAxis } from '../../src/types/query.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'
import { childRow, failedStep, foldRow, stepRow } from '../insight/rows.ts'

const label = defineStep('label', async (n: number) => n)

for (const kind of await storesUnderTest()) {
  test.group(`Run detail | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a run comes with its timeline and its children', async ({ assert }) => {
      const engine = world.engine()
      engine.register('child', '1', async (_, n: number) => n)
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1)
        await ctx.child('child', 1, 'mine')
        await ctx.startChild('child', 2)
        return ctx.all('child', [3, 4])
      })
      await engine.start('w', null, 'r')
      await world.ended('r')
      await world.quiet()
      const detail = await engine.getRunDetail('r')
      assert.deepInclude(detail?.run, { id: 'r', status: 'completed' })
      assert.deepEqual(detail?.timeline, await world.rows('r'))
      const children = ['mine', 'r.child.2', 'r.all.3.0', 'r.all.3.1']
      assert.deepEqual(detail?.children, children)
      assert.deepEqual(await engine.getRunChildren('r'), children)
      assert.sameMembers(Object.keys(detail!), ['run', 'timeline', 'children'])
      assert.isNull(await engine.getRunDetail('nobody'))
      assert.deepEqual(await engine.getRunChildren('nobody'), [])
    })

    test('a wide fan is one line, called after its workflow or its step', async ({ assert }) => {
      const engine = world.engine()
      engine.register('child', '1', async (_, n: number) => {
        if (n % 3 === 0) throw new Error(`no ${n}`)
        return n
      })
      engine.handle('label', (n) => n)
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1)
        await ctx.allSettled('child', [1, 2, 3, 4], { concurrency: 8 })
        await ctx.all(label, [1, 2, 3])
        await ctx.all(label, [1, 2])
      })
      await engine.start('w', null, 'r')
      await world.ended('r')
      await world.quiet()
      const detail = await engine.getRunDetail('r', { summarizeFansOver: 2 })
      assert.deepEqual(
        detail?.timeline.map((row) => row.seq),
        [0, 8, 9]
      )
      assert.containsSubset(detail?.fans, [
        {
          label: 'child',
          firstSeq: 1,
          lastSeq: 4,
          size: 4,
          total: 4,
          notStarted: 0,
          counts: { completed: 3, failed: 1, running: 0, pending: 0 },
          failures: [{ seq: 3, id: 'r.all.1.w0.2', error: 'no 3' }],
        },
        { group: 'all:5', label: 'label', size: 3, counts: { completed: 3 }, failures: [] },
      ])
      assert.equal(detail?.childCount, 4)
      assert.lengthOf(detail!.children, 4)
      const narrow = await engine.getRunDetail('r', { summarizeFansOver: 99 })
      assert.deepEqual(narrow?.fans, [])
      assert.lengthOf(narrow!.timeline, 10)
    })

    test('what the store counts equals what the rows tell', async ({ assert }) => {
      const store = world.store
      const wide = { parallelGroup: 'all:10:n9:ff' }
      const rows = [
        stepRow(-1, { name: 'compensate:a' }),
        stepRow(0, { events: [] }),
        foldRow(1, 0, [1, { two: 2 }, null]),
        childRow(4, 'r.all.1.3', { ok: false, error: 'no' }, { parallelGroup: 'all:1' }),
        childRow(5, 'r.all.1.4', undefined, { parallelGroup: 'all:1' }),
        stepRow(6, { name: 'spawn:other', kind: 'local' }),
        stepRow(10, wide),
        failedStep(11, wide),
        stepRow(12, { ...wide, status: 'pending', enqueuedAt: stepRow(3).enqueuedAt }),
        failedStep(13, { ...wide, wakeAt: 5 }),
      ]
      for (const row of rows) await store.saveCheckpoint(row)
      const stored = await store.listCheckpoints('r')
      for (const over of [0, 1, 2, 3, 4, 5, 99, Number.NaN]) {
        const { timeline, fans } = await summarizeRunFromStore(store, 'r', over)
        assert.deepEqual({ timeline, fans }, summarizeTimeline(stored, over), `over ${over}`)
      }
      for (const name of ['all:1', 'all:10:n9:ff']) {
        for (const query of [{}, { offset: 1, limit: 2 }, { failedOnly: true }, { offset: 3 }]) {
          const page = await pageFanFromStore(store, 'r', name, query)
          assert.deepEqual(page, pageFan(stored, name, query), JSON.stringify(query))
        }
      }
      assert.isNull(await pageFanFromStore(store, 'r', 'all:7'))
      const plain = new InMemoryStateStore()
      for (const row of rows) await plain.saveCheckpoint(row)
      const { fans } = await summarizeRunFromStore(plain, 'r', 2)
      assert.deepEqual(fans, summarizeTimeline(rows, 2).fans)
    })

    test('at most 200 children are listed; all are counted', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => {})
      await engine.start('w', null, 'r')
      await world.ended('r')
      for (let i = 0; i < 620; i++) {
        const fields = { parallelGroup: 'all:0' }
        await world.store.saveCheckpoint(childRow(i, `c${i}`, { ok: true, value: i }, fields))
      }
      const { children, childCount, timeline, fans } = (await engine.getRunDetail('r', {
        summarizeFansOver: 50,
      }))!
      assert.equal(childCount, 620)
      assert.deepEqual([children.length, children[0], children[199]], [200, 'c0', 'c199'])
      assert.deepEqual(timeline, [])
      assert.equal(fans?.[0].size, 620)
      assert.lengthOf(await engine.getRunChildren('r'), 620)
      const page = await engine.getFanMembers('r', 'all:0', { offset: 510, limit: 3 })
      assert.deepEqual(
        page?.items.map((row) => row.seq),
        [510, 511, 512]
      )
      assert.equal(page?.total, 620)
    })

    test('members are paged; unknown runs and groups are null', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.all(label, [1, 2, 3]))
      await engine.start('w', null, 'r')
      await world.held.fail(await world.held.task('label', 2), 'no')
      await world.quiet()
      const page = await engine.getFanMembers('r', 'all:0', { offset: 1, limit: 1 })
      assert.deepInclude(page, { total: 3 })
      assert.containsSubset(page?.items, [{ seq: 1, name: 'label' }])
      const failed = await engine.getFanMembers('r', 'all:0', { failedOnly: true })
      assert.deepEqual([failed?.total, failed?.items[0]?.seq], [1, 1])
      assert.isNull(await engine.getFanMembers('r', 'all:9', {}))
      assert.isNull(await engine.getFanMembers('nobody', 'all:0', {}))
    })

    test('suspended runs tell what they are parked on', async ({ assert }) => {
      const engine = world.engine()
      engine.register('signals', '1', async (ctx) =>
        Promise.all([ctx.waitForSignal('first'), ctx.waitForSignal('second')])
      )
      engine.register('sleeps', '1', async (ctx) => ctx.sleep('1h'))
      engine.register('parent', '1', async (ctx) => ctx.child('sleeps', null, 'kid'))
      engine.register('done', '1', async () => {})
      for (const name of ['signals', 'parent', 'done']) await engine.start(name, null, name)
      await world.ended('done')
      await world.parked('kid')
      await world.parked('signals')
      assert.deepEqual(
        await engine.waitingFor(['signals', 'parent', 'kid', 'done', 'nobody', 'kid']),
        { signals: { on: 'signal', name: 'first' }, parent: { on: 'child', name: 'kid' } }
      )
      assert.deepEqual(await engine.waitingFor([]), {})
    })

    test('facets and values count the runs that match', async ({ assert }) => {
      const engine = world.engine()
      engine.register('a', '1', async () => {}, { tags: ['x'], origin: '@x/a' })
      engine.register('b', '2', async (ctx) => ctx.waitForSignal('never'))
      for (const id of ['1', '2']) await engine.start('a', null, id, { tags: ['y'] })
      await engine.start('b', null, '3', { namespace: 'blue', searchAttributes: { n: 1 } })
      for (const id of ['1', '2']) await world.ended(id)
      await world.parked('3')
      const facets = await engine.runFacets()
      assert.sameDeepMembers(facets, [
        { status: 'completed', origin: '@x/a', count: 2 },
        { status: 'suspended', origin: null, count: 1 },
      ])
      assert.deepEqual(await engine.runFacets({ workflow: 'b' }), [
        { status: 'suspended', origin: null, count: 1 },
      ])
      const values = async (axis: RunValueAxis) => {
        const rows = await engine.runValueFacets(axis)
        return rows.map(({ value, count }) => `${value} ${count}`)
      }
      assert.deepEqual(await values('workflow'), ['a 2', 'b 1'])
      assert.deepEqual(await values('workflowVersion'), ['1 2', '2 1'])
      assert.deepEqual(await values('tag'), ['x 2', 'y 2'])
      assert.deepEqual(await values('namespace'), ['default 2', 'blue 1'])
      assert.deepEqual(await values('origin'), ['@x/a 2'])
      assert.deepEqual(await values('attributeKey'), ['n 1'])
      assert.deepEqual(await engine.runValueFacets('tag', {}, { search: 'Y', limit: 1 }), [
        { value: 'y', count: 2 },
      ])
      const error = await engine.runValueFacets('status' as never).catch((thrown) => thrown)
      assert.instanceOf(error, InvalidArgumentError)
    })
  })

  test.group(`ETags of run detail | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('whoever has the current state is told so, and no row is read', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.all(label, [1, 2, 3]))
      await engine.start('w', null, 'r')
      await world.held.task('label', 3)
      await world.parked('r')
      const query = { summarizeFansOver: 2 }
      const { etag } = (await engine.getRunDetail('r', query))!
      const page = (await engine.getFanMembers('r', 'all:0'))!
      assert.match(etag!, /^W\//)
      world.gate(engine).calls.clear()
      const again = await engine.getRunDetail('r', { ...query, ifNoneMatch: `"x", ${etag}` })
      const samePage = await engine.getFanMembers('r', 'all:0', { ifNoneMatch: page.etag })
      assert.deepInclude(again, { notModified: true, timeline: [], children: [], etag })
      assert.deepEqual(samePage, { items: [], total: 0, etag: page.etag, notModified: true })
      assert.sameMembers([...world.gate(engine).calls.keys()], ['getRun', 'checkpointStats'])

      await world.held.complete(await world.held.task('label', 2), 2)
      const fresh = await engine.getRunDetail('r', { ...query, ifNoneMatch: etag })
      const freshPage = await engine.getFanMembers('r', 'all:0', { ifNoneMatch: page.etag })
      assert.isUndefined(fresh?.notModified)
      assert.equal(fresh?.fans?.[0].counts.completed, 1)
      assert.lengthOf(freshPage!.items, 3)
      assert.notEqual(fresh?.etag, etag)
    }).skip(!kind.complete, 'a store without aggregates computes no tag')

    test('a store without aggregates has no tag, and ignores the one it is given', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.localStep('a', () => 1))
      await engine.start('w', null, 'r')
      await world.ended('r')
      const options = { summarizeFansOver: 1, ifNoneMatch: '*' }
      const detail = await engine.getRunDetail('r', options)
      assert.lengthOf(detail!.timeline, 1)
      assert.notProperty(detail, 'etag')
    }).skip(kind.complete, 'this store has aggregates')

    test('without summaries there is no tag', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => {})
      await engine.start('w', null, 'r')
      await world.ended('r')
      for (const summarizeFansOver of [undefined, 0, -5, Number.NaN]) {
        const detail = await engine.getRunDetail('r', { summarizeFansOver, ifNoneMatch: '*' })
        assert.sameMembers(Object.keys(detail!), ['run', 'timeline', 'children'])
      }
    })
  })
}
