/*
 * Fans: one answer for many members, whatever order they end in, and one turn of the parent for a wave.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import { type GatherError, InvalidArgumentError } from '../../src/errors.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'
import { beforeSettle } from '../helpers/settling.ts'

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
    }).tags(['@race-54'])

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

    for (const continuations of [false, {}] as const) {
      const how = continuations ? 'continued' : 'replayed'
      test(`a turn in the middle of a fan sends no member again, ${how}`, async ({ assert }) => {
        const engine = world.engine({ transport: 'held', continuations })
        engine.register('parent', '1', async (ctx) =>
          Promise.all([ctx.all(double, [1, 2, 3]), ctx.waitForSignal('go')])
        )
        await engine.start('parent', null, 'p')
        await world.parked('p')
        await world.held.complete(await world.held.task('double', 2), 4)
        for (let pass = 0; pass < 2; pass++) {
          world.time.jump(300_001)
          await engine.resumeDueTimers()
          await world.parked('p')
        }
        await engine.signal('go', 'on')
        await world.parked('p')
        assert.lengthOf(world.held.sent, 3)
        for (const seq of [0, 2]) {
          const row = await world.store.getCheckpoint('p', seq)
          assert.deepInclude(row, { status: 'pending', attempts: 1, parallelGroup: 'all:0' })
        }
        for (const nth of [1, 3])
          await world.held.complete(await world.held.task('double', nth), nth)
        assert.deepEqual(await world.output('p'), [[1, 4, 3], 'on'])
        assert.lengthOf(world.held.sent, 3)
      }).tags(['@race-52', '@control-40'])
    }

    test('a turn between two retries of a fan counts no attempt and sends nothing', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('parent', '1', async (ctx) =>
        Promise.all([
          ctx.all(double, [1, 2], { retries: 2, backoffMs: 600_000 }),
          ctx.waitForSignal('go'),
        ])
      )
      await engine.start('parent', null, 'p')
      await world.parked('p')
      await world.held.fail(await world.held.task('double', 1), 'once')
      await world.held.complete(await world.held.task('double', 2), 4)
      await world.parked('p')
      const wakeAt = world.time.now + 600_000
      world.time.jump(300_001)
      await engine.signal('go', 'on')
      await world.parked('p')
      assert.lengthOf(world.held.sent, 2)
      const row = await world.store.getCheckpoint('p', 0)
      assert.deepInclude(row, { status: 'failed', attempts: 1, wakeAt })
      world.time.jump(300_000)
      await engine.resumeDueTimers()
      await world.held.complete(await world.held.task('double', 3), 2)
      assert.deepEqual(await world.output('p'), [[2, 4], 'on'])
      assert.equal(world.held.sent[2].attempt, 2)
    }).tags(['@race-52', '@control-40'])

    test('a turn in the middle of a fan starts no child again and puts no wait of one that ended', async ({
      assert,
    }) => {
      const engine = world.engine()
      let bodies = 0
      engine.register('child', '1', async (ctx, n: number) => {
        bodies += 1
        return n === 1 ? n : ctx.waitForSignal(`go-${n}`)
      })
      engine.register('parent', '1', async (ctx) =>
        Promise.all([ctx.all('child', [1, 2, 3]), ctx.waitForSignal('go')])
      )
      await engine.start('parent', null, 'p')
      for (const i of [1, 2]) await world.parked(`p.all.0.${i}`)
      await world.parked('p')
      await engine.signal('go', 'on')
      await world.parked('p')
      assert.equal(bodies, 3)
      const waiters = await world.store.listSignalWaiters('child:')
      assert.sameMembers(
        waiters.map(({ token }) => token),
        ['child:p.all.0.1', 'child:p.all.0.2']
      )
      for (const n of [2, 3]) await engine.signal(`go-${n}`, n)
      assert.deepEqual(await world.output('p'), [[1, 2, 3], 'on'])
      assert.equal(await engine.countRuns(), 4)
    }).tags(['@race-52'])

    test('a member that ended still belongs to its fan', async ({ assert }) => {
      const engine = world.engine({ transport: 'none' })
      engine.register('child', '1', async (ctx, n: number) => ctx.waitForSignal(`go-${n}`))
      engine.register('parent', '1', async (ctx) => ctx.allSettled('child', [1, 2, 3]))
      await engine.start('parent', null, 'p')
      for (const i of [0, 1, 2]) await world.parked(`p.all.0.${i}`)
      await world.parked('p')
      const groups = async () => {
        const rows = await world.rows('p')
        return rows.map((row) => [row.status, row.parallelGroup])
      }
      await engine.signal('go-2', 'two')
      await engine.cancel('p.all.0.2')
      await world.quiet()
      assert.deepEqual(await groups(), [
        ['running', 'all:0'],
        ['completed', 'all:0'],
        ['completed', 'all:0'],
      ])
      const page = await engine.getFanMembers('p', 'all:0', {})
      assert.equal(page?.total, 3)
      await engine.signal('go-1', 'one')
      await world.ended('p')
      assert.deepEqual(await groups(), Array(3).fill(['completed', 'all:0']))
    }).tags(['@race-53'])

    test('members that ended before their parent waits for them answer at once', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('child', '1', async (_, n: number) => {
        if (n === 3) throw new Error('three')
        return n * 10
      })
      engine.register('parent', '1', async (ctx) => {
        const settled = await ctx.allSettled<number>('child', [1, 2, 3])
        return settled.map((one) => (one.status === 'fulfilled' ? one.value : one.error))
      })
      for (const [i, n] of [1, 2, 3].entries()) await engine.start('child', n, `p.all.0.${i}`)
      for (const i of [0, 1, 2]) await world.ended(`p.all.0.${i}`)
      await engine.start('parent', null, 'p')
      assert.deepEqual(await world.output('p'), [10, 20, 'three'])
      assert.deepEqual(await world.store.listSignalWaiters(''), [])
    }).tags(['@race-29', '@control-25'])

    test('members that cannot start fail their fan with the cause', async ({ assert }) => {
      const engine = world.engine()
      engine.register('parent', '1', async (ctx) =>
        ctx.all('unknown', [1, 2]).catch((error: GatherError) => error.failures)
      )
      await engine.start('parent', null, 'p')
      const failures = (await world.output('p')) as GatherError['failures']
      assert.lengthOf(failures, 2)
      for (const { error, code } of failures) {
        assert.include(error, 'child workflow "unknown" failed to start')
        assert.equal(code, 'workflow_not_registered')
      }
    }).tags(['@race-30', '@control-24'])

    for (const end of ['parks', 'returns', 'throws'] as const) {
      test(`a sibling that is cancelled in the middle of its turn stays so when it ${end}`, async ({
        assert,
      }) => {
        const engine = world.engine()
        const fails = deferred<void>()
        engine.register('child', '1', async (ctx, busy: boolean) => {
          if (!busy) {
            await ctx.localStep('wait', () => fails.promise)
            throw new Error('first')
          }
          if (end === 'throws') throw new Error('late')
          if (end === 'parks') await ctx.waitForSignal('never', { timeoutMs: 1000 })
        })
        engine.register('parent', '1', async (ctx) => {
          const fan = ctx.all('child', [true, false], { mode: 'failFast' })
          return fan.catch((error: GatherError) => error.failures.map(({ index }) => index))
        })
        const busy = 'p.all.0.0'
        let settling = false
        beforeSettle(
          world.gate(engine),
          async () => {
            settling = true
            fails.resolve()
            await world.reached(busy, 'cancelled')
          },
          busy
        )
        await engine.start('parent', null, 'p')
        assert.deepEqual(await world.output('p'), [1])
        await world.quiet()
        assert.isTrue(settling)
        for (let pass = 0; pass < 2; pass++) {
          const run = await world.run(busy)
          assert.equal(run.status, 'cancelled')
          assert.deepEqual(run.error, { message: 'cancelled' })
          assert.isUndefined(run.wakeAt)
          world.time.jump(1001)
          await engine.resumeDueTimers()
          await world.quiet()
        }
      }).tags(['@race-2', '@control-2'])
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
      // Which of them begins first is nobody's promise.
      assert.deepEqual(Object.fromEntries(tries), { 1: 2, 2: 1 })
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
