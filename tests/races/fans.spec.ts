/*
 * Fans: one answer for many members, whatever order they end in, and one turn of the parent for a wave.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import { type GatherError, InvalidArgumentError } from '../../src/errors.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const double = defineStep('double', (n: number) => n * 2)

for (const kind of await storesUnderTest()) {
  test.group(`Fans | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('children answer in input order, and the parent takes one turn for all of them', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'none' })
      engine.register('child', '1', async (ctx, n: number) => {
        await ctx.waitForSignal(`go-${n}`)
        return n * 10
      })
      engine.register('parent', '1', async (ctx) => ctx.all<number>('child', [1, 2, 3]))
      await engine.start('parent', null, 'p')
      for (const i of [0, 1, 2]) await world.parked(`p.all.0.${i}`)
      const { turns, waitSeqs } = await world.parked('p')
      assert.deepEqual(waitSeqs, { from: 0, to: 2 })
      for (const n of [3, 1]) await engine.signal(`go-${n}`)
      await world.quiet()
      const waiting = await world.run('p')
      assert.equal(waiting.turns, turns)
      await engine.signal('go-2')
      assert.deepEqual(await world.output('p'), [10, 20, 30])
      const ended = await world.run('p')
      assert.equal(ended.turns, (turns ?? 0) + 1)
      assert.deepEqual(await engine.getRunChildren('p'), ['p.all.0.0', 'p.all.0.1', 'p.all.0.2'])
    })

    test('steps answer in input order, once for the whole fan', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('parent', '1', async (ctx) => ctx.all(double, [1, 2, 3]))
      await engine.start('parent', null, 'p')
      const parked = await world.parked('p')
      for (const nth of [3, 1, 2])
        await world.held.complete(await world.held.task('double', nth), nth)
      assert.deepEqual(await world.output('p'), [1, 2, 3])
      const ended = await world.run('p')
      assert.equal(ended.turns, (parked.turns ?? 0) + 1)
      const rows = await world.rows('p')
      assert.deepEqual(
        rows.map((row) => row.parallelGroup),
        ['all:0', 'all:0', 'all:0']
      )
    })

    for (const continuations of [false, {}] as const) {
      const how = continuations ? 'continued' : 'replayed'
      test(`a failed fan beside another branch is retried, ${how}`, async ({ assert }) => {
        const engine = world.engine({ transport: 'held', continuations })
        engine.register('w', '1', async (ctx) =>
          Promise.all([
            ctx.all(double, [0, 1]).then(() => ctx.localStep('after fan', () => 1)),
            ctx.waitForSignal('t').then(() => ctx.localStep('after signal', () => 2)),
          ])
        )
        await engine.start('w', null, 'r')
        await world.held.complete(await world.held.task('double', 1), 'a')
        await world.held.fail(await world.held.task('double', 2), { message: 'no' })
        await world.ended('r')
        await engine.signal('t', 'hello')
        await engine.requeue('r')
        await world.parked('r')
        await world.held.complete(await world.held.task('double', 3), 'b')
        assert.deepEqual(await world.output('r'), [1, 2])
      })
    }

    test('failures are gathered; allSettled answers them as values', async ({ assert }) => {
      const engine = world.engine()
      engine.handle('pick', (n) => {
        if (n === 2) throw Object.assign(new Error('two'), { code: 'no_two' })
        return n
      })
      const pick = defineStep('pick', (n: number) => n)
      engine.register('all', '1', async (ctx) =>
        ctx.all(pick, [1, 2, 3]).catch((error: GatherError) => ({
          message: error.message,
          failures: error.failures,
        }))
      )
      engine.register('settled', '1', async (ctx) => ctx.allSettled(pick, [1, 2]))
      await engine.start('all', null, 'a')
      await engine.start('settled', null, 's')
      assert.deepEqual(await world.output('a'), {
        message: 'ctx.all: 1 of 3 child(ren) failed: a:1',
        failures: [{ index: 1, id: 'a:1', error: 'two', code: 'no_two' }],
      })
      assert.deepEqual(await world.output('s'), [
        { status: 'fulfilled', value: 1 },
        { status: 'rejected', id: 's:1', error: 'two', code: 'no_two' },
      ])
    })

    test('a fail-fast fan ends with the first failure and cancels the others', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'none' })
      engine.register('child', '1', async (ctx, n: number) => {
        await ctx.waitForSignal(`go-${n}`)
        throw new Error(`child ${n}`)
      })
      engine.register('parent', '1', async (ctx) =>
        ctx
          .all('child', [1, 2, 3], { mode: 'failFast' })
          .catch((error: GatherError) => error.failures)
      )
      await engine.start('parent', null, 'p')
      for (const i of [0, 1, 2]) await world.parked(`p.all.0.${i}`)
      await world.parked('p')
      await engine.signal('go-2')
      assert.deepEqual(await world.output('p'), [{ index: 1, id: 'p.all.0.1', error: 'child 2' }])
      await world.reached('p.all.0.0', 'cancelled')
      await world.reached('p.all.0.2', 'cancelled')
      const rows = await world.rows('p')
      assert.equal(rows[0].parallelGroup, 'all:0:ff')
    })

    test('concurrency bounds what is in flight, wave by wave', async ({ assert }) => {
      const engine = world.engine({ transport: 'none' })
      engine.register('child', '1', async (ctx, n: number) => {
        await ctx.waitForSignal(`go-${n}`)
        return n
      })
      engine.register('parent', '1', async (ctx) =>
        ctx.all('child', [0, 1, 2, 3, 4, 5, 6], { concurrency: 4 })
      )
      await engine.start('parent', null, 'p')
      const started = async () => {
        await world.quiet()
        const rows = await world.rows('p')
        return rows.filter((row) => row.status === 'running').length
      }
      await world.parked('p')
      assert.equal(await started(), 4)
      const children = await engine.getRunChildren('p')
      assert.deepEqual(children.slice(0, 3), ['p.all.0.w0.0', 'p.all.0.w0.1', 'p.all.0.w1.2'])
      await engine.signal('go-0')
      assert.equal(await started(), 3)
      await engine.signal('go-1')
      assert.equal(await started(), 4)
      for (const n of [2, 3, 4, 5, 6]) await engine.signal(`go-${n}`)
      assert.deepEqual(await world.output('p'), [0, 1, 2, 3, 4, 5, 6])
    })

    test('retries of a step fan keep their own backoff', async ({ assert }) => {
      const engine = world.engine()
      const tries = new Map<number, number>()
      engine.handle('flaky', (n) => {
        const count = (tries.get(n as number) ?? 0) + 1
        tries.set(n as number, count)
        if (n === 1 && count === 1) throw new Error('once')
        return n
      })
      const flaky = defineStep('flaky', (n: number) => n, { retries: 2, backoffMs: 500 })
      engine.register('parent', '1', async (ctx) => ctx.all(flaky, [1, 2]))
      await engine.start('parent', null, 'p')
      await world.parked('p')
      await world.time.advance(500)
      await engine.resumeDueTimers()
      assert.deepEqual(await world.output('p'), [1, 2])
      assert.deepEqual(
        [...tries],
        [
          [1, 2],
          [2, 1],
        ]
      )
    })

    test('an empty fan takes no position; misuse is refused before any', async ({ assert }) => {
      const engine = world.engine()
      const problems: unknown[] = []
      engine.register('parent', '1', async (ctx) => {
        const empty = await ctx.all('child', [])
        for (const concurrency of [0, -1, 1.5, Number.NaN]) {
          await ctx.all(double, [1], { concurrency }).catch((error) => problems.push(error))
        }
        const queued = { queue: 'q' } as object
        await ctx.all(double, [1], queued).catch((error) => problems.push(error))
        return empty
      })
      await engine.start('parent', null, 'p')
      assert.deepEqual(await world.output('p'), [])
      assert.lengthOf(problems, 5)
      for (const problem of problems) assert.instanceOf(problem, InvalidArgumentError)
      assert.deepEqual(await world.rows('p'), [])
    })
  })
}
