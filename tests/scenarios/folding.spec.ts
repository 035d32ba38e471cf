/*
 * Waves of children that all succeeded become one row; a replay sees every member all the same.
 */
import { test } from '@japa/runner'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest({ fallbacks: false })) {
  test.group(`Folding | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    const inputs = Array.from({ length: 100 }, (_, i) => i)
    /** Some answer nothing, some null: JSON must not mix them up. */
    const answer = (n: number) => (n % 5 === 0 ? undefined : n % 5 === 1 ? null : { n })

    test('a fan in waves leaves one row a wave, and replays cold and warm alike', async ({
      assert,
    }) => {
      const [first, second] = [world.engine(), world.engine()]
      let bodies = 0
      for (const engine of [first, second]) {
        engine.register('child', '1', async (_, n: number) => answer(n))
        engine.register('w', '1', async (ctx) => {
          bodies += 1
          const outputs = await ctx.all<unknown>('child', inputs, { concurrency: 40 })
          const go = await ctx.waitForSignal('go')
          return [outputs.map((output) => output ?? String(output)), go]
        })
      }
      await first.start('w', null, 'r')
      await world.parked('r')
      const rows = await world.rows('r')
      assert.deepEqual(
        rows.map(({ seq, name, status }) => [seq, name, status]),
        [0, 1, 2, 3, 4].map((wave) => [
          20 * wave,
          `signal:child:fold:r.all.0.w${wave}.:${20 * wave}-${20 * wave + 19}`,
          'completed',
        ])
      )
      const children = inputs.map((i) => `r.all.0.w${Math.floor(i / 20)}.${i}`)
      assert.deepEqual(await first.getRunChildren('r'), children)
      const before = bodies
      await second.signal('go', 'on')
      const expected = inputs.map((n) => answer(n) ?? String(answer(n)))
      assert.deepEqual(await world.output('r'), [expected, 'on'])
      assert.equal(bodies, before + 1)
      assert.equal(await first.deleteRun('r'), 101)
      assert.deepEqual(await world.rows('r'), [])
    })

    test('what failed, or went on as another run, keeps its row', async ({ assert }) => {
      const engine = world.engine()
      engine.register('child', '1', async (ctx, n: number) => {
        if (n === 20) throw new Error('no')
        if (n === 50) return ctx.continueAsNew(51)
        return n
      })
      engine.register('w', '1', async (ctx) => {
        const settled = await ctx.allSettled('child', inputs)
        await ctx.waitForSignal('go')
        return settled.map((one) => one.status === 'fulfilled')
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.deepEqual(await world.timeline('r'), [
        [0, 'signal:child:fold:r.all.0.:0-19', 'completed'],
        [20, 'signal:child:r.all.0.20', 'completed'],
        [21, 'signal:child:fold:r.all.0.:21-49', 'completed'],
        [50, 'signal:child:r.all.0.50~1', 'completed'],
        [51, 'signal:child:fold:r.all.0.:51-99', 'completed'],
      ])
      await engine.signal('go')
      assert.deepEqual(
        await world.output('r'),
        inputs.map((n) => n !== 20)
      )
    })

    test('a fan beside other branches keeps its place in the order', async ({ assert }) => {
      const [first, second] = [world.engine(), world.engine()]
      for (const engine of [first, second]) {
        engine.register('child', '1', async (_, n: number) => n)
        engine.register('w', '1', async (ctx) => {
          const order: string[] = []
          await Promise.all([
            ctx.all('child', inputs.slice(0, 30)).then(() => order.push('fan')),
            ctx.waitForSignal('a').then(() => order.push('a')),
            ctx.waitForSignal('b').then(() => order.push('b')),
          ])
          await ctx.waitForSignal('go')
          return order
        })
      }
      await first.signal('a')
      await first.start('w', null, 'r')
      await world.parked('r')
      await second.signal('b')
      await world.parked('r')
      assert.lengthOf(await world.rows('r'), 3)
      await first.signal('go')
      assert.deepEqual(await world.output('r'), ['a', 'fan', 'b'])
    })

    test('a wave that is folded late does not take the place of its fan away', async ({
      assert,
    }) => {
      const [first, second] = [world.engine(), world.engine()]
      for (const engine of [first, second]) {
        engine.register('child', '1', async (ctx, n: number) =>
          n < 20 ? n : ctx.waitForSignal(`child:${n}`)
        )
        engine.register('w', '1', async (ctx) => {
          const order: string[] = []
          await Promise.all([
            ctx
              .all('child', inputs.slice(0, 41), { concurrency: 40 })
              .then(() => order.push('fan')),
            ctx.waitForSignal('b').then(() => order.push('b')),
            ctx.waitForSignal('c').then(() => order.push('c')),
          ])
          await ctx.waitForSignal('go')
          return order
        })
      }
      const held: (() => Promise<unknown>)[] = []
      const release = world.gate(first).around('compactCheckpoints', async (proceed) => {
        held.push(proceed)
        return true
      })
      await first.start('w', null, 'r')
      await world.parked('r')
      release()
      for (let n = 20; n < 41; n++) await second.signal(`child:${n}`, n)
      await world.parked('r')
      for (const token of ['b', 'c']) {
        await second.signal(token)
        await world.parked('r')
      }
      // What the first process was about to do, and does only now.
      for (const proceed of held) await proceed()
      await first.signal('go')
      assert.deepEqual(await world.output('r'), ['fan', 'b', 'c'])
      const [firstRow] = await world.rows('r')
      assert.equal(firstRow.order, 0)
    })

    test('small waves stay as they are', async ({ assert }) => {
      const engine = world.engine()
      engine.register('child', '1', async (_, n: number) => n)
      engine.register('w', '1', async (ctx) => ctx.all('child', inputs.slice(0, 15)))
      await engine.start('w', null, 'r')
      await world.ended('r')
      await world.quiet()
      assert.lengthOf(await world.rows('r'), 15)
    })
  })
}
