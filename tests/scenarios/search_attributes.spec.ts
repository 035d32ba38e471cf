/*
 * Search attributes that a body merges: exactly once, visible to queries at the next commit, carried along
 * a chain, judged by a schema.
 */
import { test } from '@japa/runner'
import { z } from 'zod'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Search attributes | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('merge key by key, and are found', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        await ctx.upsertSearchAttributes({ stage: 'begun', total: 1 })
        await Promise.all([
          ctx.upsertSearchAttributes({ a: true }),
          ctx.upsertSearchAttributes({ total: 2.5 }),
        ])
        await ctx.waitForSignal('go')
        await ctx.upsertSearchAttributes({ stage: 'over' })
      })
      const searchAttributes = { customer: 'c1', stage: 'new' }
      await engine.start('w', null, 'r', { searchAttributes })
      const parked = await world.parked('r')
      const merged = { customer: 'c1', stage: 'begun', total: 2.5, a: true }
      assert.deepEqual(parked.searchAttributes, merged)
      const found = await engine.listRuns({
        attributes: [
          { key: 'stage', op: 'eq', value: 'begun' },
          { key: 'total', op: 'gt', value: 2 },
          { key: 'customer', op: 'eq', value: 'c1' },
        ],
      })
      assert.lengthOf(found, 1)
      await engine.signal('go')
      const run = await world.ended('r')
      assert.deepEqual(run.searchAttributes, { ...merged, stage: 'over' })
      const timeline = await world.timeline('r')
      assert.deepEqual(
        timeline.map(([, name]) => name),
        [
          'searchAttributes',
          'searchAttributes',
          'searchAttributes',
          'signal:go',
          'searchAttributes',
        ]
      )
    })

    test('are not merged again by a replay', async ({ assert }) => {
      const [first, second] = [world.engine(), world.engine()]
      for (const engine of [first, second]) {
        engine.register('w', '1', async (ctx) => {
          await ctx.upsertSearchAttributes({ n: 1 })
          await ctx.waitForSignal('go')
          return 'done'
        })
      }
      await first.start('w', null, 'r')
      await world.parked('r')
      await world.store.updateRun('r', { searchAttributes: { n: 7 } })
      await second.signal('go')
      const run = await world.ended('r')
      assert.deepEqual(run.searchAttributes, { n: 7 })
    })

    test('go on with the chain', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, n: number) => {
        await ctx.upsertSearchAttributes({ [`link${n}`]: n })
        if (n < 2) await ctx.continueAsNew(n + 1)
      })
      await engine.start('w', 0, 'r')
      const last = await world.ended('r~2')
      assert.deepEqual(last.searchAttributes, { link0: 0, link1: 1, link2: 2 })
    })

    test('a schema judges what they become; a refusal is recorded and can be caught', async ({
      assert,
    }) => {
      const engine = world.engine()
      const searchAttributesSchema = z.object({
        stage: z.enum(['a', 'b']),
        n: z.number().optional(),
      })
      const body = async (ctx: import('../../src/types/ctx.ts').WorkflowCtx) => {
        await ctx.upsertSearchAttributes({ stage: 'a' })
        let refused: string | undefined
        try {
          await ctx.upsertSearchAttributes({ n: 'many' as never })
        } catch (error) {
          refused = (error as { code: string }).code
        }
        await ctx.waitForSignal('go')
        await ctx.upsertSearchAttributes({ n: 2 })
        return refused
      }
      engine.register('w', '1', body, { searchAttributesSchema })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.signal('go')
      assert.equal(await world.output('r'), 'schema_validation')
      const { searchAttributes } = await world.run('r')
      assert.deepEqual(searchAttributes, { stage: 'a', n: 2 })
    })

    test('what cannot be kept is refused by name', async ({ assert }) => {
      const engine = world.engine()
      const bad: [unknown, RegExp][] = [
        [null, /takes an object/],
        [{ a: Number.NaN }, /"a" must be a string/],
        [{ a: { b: 1 } }, /"a" must be a string/],
        [{ '': 1 }, /"" must not be empty/],
        [{ a: 'x\u0000' }, /"a" must be a string/],
      ]
      for (const [i, [attributes, message]] of bad.entries()) {
        engine.register('w', String(i + 1), async (ctx) =>
          ctx.upsertSearchAttributes(attributes as never)
        )
        await engine.start('w', null, `r${i}`)
        const run = await world.ended(`r${i}`)
        assert.match(run.error!.message, message)
        assert.isUndefined(run.searchAttributes)
      }
    })
  })
}
