/*
 * Sleeping and waiting for signals: deadlines that pass while nobody looks, durations of every form, and
 * waits that end exactly once.
 */
import { test } from '@japa/runner'
import { SignalTimeoutError } from '../../src/errors.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Waiting | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a timer that fell due while every process was down fires right after the next boot', async ({
      assert,
    }) => {
      const before = world.engine()
      const after = world.engine()
      for (const engine of [before, after]) {
        engine.register('w', '1', async (ctx) => {
          await ctx.sleep('1h')
          return ctx.now()
        })
      }
      await before.start('w', null, 'r')
      await world.parked('r')
      await world.crash(before)
      world.time.jump(3 * 86_400_000)
      const results = await after.resumeDueTimers()
      assert.deepEqual(results, [{ runId: 'r', status: 'completed', output: world.time.now }])
    }).tags(['@scenario-3'])

    test('due runs are taken most overdue first, a limited number at a time', async ({
      assert,
    }) => {
      const engine = world.engine({ timerBatchSize: 2, turnSlots: 1 })
      const order: string[] = []
      engine.register('w', '1', async (ctx, ms: number) => {
        await ctx.sleep(ms)
        order.push(ctx.runId)
      })
      for (const [id, ms] of [
        ['late', 3000],
        ['early', 1000],
        ['middle', 2000],
      ] as const) {
        await engine.start('w', ms, id)
        await world.parked(id)
      }
      world.time.jump(5000)
      assert.lengthOf(await engine.resumeDueTimers(), 2)
      assert.deepEqual(order, ['early', 'middle'])
      assert.lengthOf(await engine.resumeDueTimers(), 1)
      assert.deepEqual(order, ['early', 'middle', 'late'])
      assert.deepEqual(await engine.resumeDueTimers(), [])
    })

    test('a run is not due before its time, and due at it', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.sleep(1000))
      await engine.start('w', null, 'r')
      await world.parked('r')
      world.time.jump(999)
      assert.deepEqual(await engine.resumeDueTimers(), [])
      world.time.jump(1)
      assert.lengthOf(await engine.resumeDueTimers(), 1)
      assert.equal(await world.status('r'), 'completed')
    })

    test('durations of every form', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, duration: string | number) => ctx.sleep(duration))
      const cases: [string | number, number][] = [
        [1500, 1500],
        ['250ms', 250],
        ['30s', 30_000],
        ['1.5 minutes', 90_000],
        ['2h', 7_200_000],
        ['7 days', 604_800_000],
        ['1 week', 604_800_000],
        [0.5, 1],
        ['0.4ms', 1],
        [1000.25, 1001],
      ]
      for (const [i, [duration, ms]] of cases.entries()) {
        await engine.start('w', duration, `r${i}`)
        const run = await world.parked(`r${i}`)
        assert.equal(run.wakeAt, world.time.now + ms, String(duration))
      }
    })

    test('a sleep of nothing, and one until the past, do not suspend', async ({ assert }) => {
      const engine = world.engine()
      const events = world.eventsOf(engine)
      engine.register('w', '1', async (ctx) => {
        await ctx.sleep(0)
        await ctx.sleep('0s')
        await ctx.sleepUntil(new Date(0))
        await ctx.sleepUntil(world.time.now)
        return 'done'
      })
      await engine.start('w', null, 'r')
      assert.equal(await world.output('r'), 'done')
      await world.quiet()
      assert.deepEqual(
        events.map((event) => event.type),
        ['run.started', 'run.completed']
      )
      assert.lengthOf(await world.rows('r'), 4)
    })

    test('durations and moments that cannot be meant fail the run with a sentence', async ({
      assert,
    }) => {
      const engine = world.engine()
      const bad: [string, unknown, RegExp][] = [
        ['sleep', 'soon', /invalid duration "soon"/],
        ['sleep', '5 fortnights', /unknown duration unit "fortnights"/],
        ['sleep', '-5s', /invalid duration/],
        ['sleep', '', /invalid duration/],
        ['sleep', -1, /invalid duration -1/],
        ['sleep', null, /invalid duration/],
        ['sleep', {}, /invalid duration/],
        ['sleep', 1e300, /duration/],
        ['sleep', '999999999999 weeks', /duration/],
        ['sleepUntil', 'tomorrow', /takes a valid Date or epoch ms/],
        ['sleepUntil', null, /takes a valid Date or epoch ms/],
        ['sleepUntil', 1e300, /takes a valid Date or epoch ms/],
        ['wait', -1, /timeoutMs must be 0 or more milliseconds/],
        ['wait', '5s', /timeoutMs must be/],
        ['wait', 1e300, /timeoutMs must be/],
      ]
      engine.register('w', '1', async (ctx, i: number) => {
        const [how, value] = bad[i]
        if (how === 'sleep') return ctx.sleep(value as string)
        if (how === 'sleepUntil') return ctx.sleepUntil(value as number)
        return ctx.waitForSignal('go', { timeoutMs: value as number })
      })
      engine.register('nan', '1', async (ctx, i: number) => {
        if (i === 0) return ctx.sleep(Number.NaN)
        if (i === 1) return ctx.sleep(Infinity)
        if (i === 2) return ctx.sleepUntil(new Date('never'))
        return ctx.waitForSignal('go', { timeoutMs: Number.NaN })
      })
      for (const [i, [how, value, message]] of bad.entries()) {
        await engine.start('w', i, `r${i}`)
        const run = await world.ended(`r${i}`)
        assert.equal(run.status, 'failed', `${how} ${JSON.stringify(value)}`)
        assert.match(run.error!.message, message)
        assert.include(['invalid_duration', 'invalid_argument'], run.error!.code!)
        assert.deepEqual(await world.rows(`r${i}`), [])
      }
      for (let i = 0; i < 4; i++) {
        await engine.start('nan', i, `nan${i}`)
        const run = await world.ended(`nan${i}`)
        assert.include(['invalid_duration', 'invalid_argument'], run.error?.code ?? run.status)
      }
    })

    test('a payload ends a bounded wait, a later one is kept', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        const first = await ctx.waitForSignal('go', { timeoutMs: 60_000 })
        await ctx.sleep('1h')
        return first
      })
      await engine.start('w', null, 'r')
      assert.deepInclude(await world.parked('r'), { wakeAt: world.time.now + 60_000 })
      await engine.signal('go', 'in time')
      assert.deepInclude(await world.parked('r'), { wakeAt: world.time.now + 3_600_000 })
      assert.isNull(await engine.signal('go', 'second'))
      world.time.jump(3_600_000)
      await engine.resumeDueTimers()
      assert.equal(await world.output('r'), 'in time')
      assert.deepEqual(await world.store.takeBufferedSignal('go'), { payload: 'second' })
    })

    test('a wait that timed out stays so: a late signal does not fill its place', async ({
      assert,
    }) => {
      const engine = world.engine()
      const seen: unknown[] = []
      engine.register('w', '1', async (ctx) => {
        const how = await ctx
          .waitForSignal('go', { timeoutMs: 1000 })
          .catch((error: SignalTimeoutError) => {
            if (error.name === 'WorkflowSuspended') throw error
            return [
              error instanceof SignalTimeoutError,
              error.token,
              error.timeoutMs,
              error.message,
            ]
          })
        seen.push(how)
        await ctx.waitForSignal('on')
        return [how, await ctx.waitForSignal('go')]
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      world.time.jump(1000)
      await engine.resumeDueTimers()
      await world.parked('r')
      assert.deepEqual(await world.store.listSignalWaiters('go'), [])
      assert.isNull(await engine.signal('go', 'late'))
      await engine.signal('on')
      const expected = [true, 'go', 1000, 'no signal "go" within 1000ms']
      assert.deepEqual(await world.output('r'), [expected, 'late'])
      for (const how of seen) assert.deepEqual(how, expected)
    })

    test('a payload recorded before the turn that looks at the deadline wins, however late that is', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.waitForSignal('go', { timeoutMs: 1000 }))
      const idle = world.engine()
      await engine.start('w', null, 'r')
      await world.parked('r')
      // An engine without the workflow delivers, but cannot run.
      await idle.signal('go', 'in time')
      world.time.jump(86_400_000)
      await engine.resumeDueTimers()
      assert.equal(await world.output('r'), 'in time')
    })

    test('a wait of nothing takes what is buffered, or times out without suspending', async ({
      assert,
    }) => {
      const engine = world.engine()
      const events = world.eventsOf(engine)
      engine.register('w', '1', async (ctx) => {
        const poll = () => ctx.waitForSignal('mail', { timeoutMs: 0 })
        const got: unknown[] = []
        for (;;) {
          try {
            got.push(await poll())
          } catch (error) {
            if ((error as { code?: string }).code !== 'signal_timeout') throw error
            return got
          }
        }
      })
      for (const mail of [1, 2, 3]) assert.isNull(await engine.signal('mail', mail))
      await engine.start('w', null, 'r')
      assert.deepEqual(await world.output('r'), [1, 2, 3])
      assert.notInclude(
        events.map((event) => event.type),
        'run.suspended'
      )
      assert.deepEqual(await world.store.listSignalWaiters(''), [])
    })

    test('undefined and null are payloads like any other', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        const got = []
        for (const token of ['a', 'b', 'c', 'd']) got.push(await ctx.waitForSignal(token))
        return got.map(String)
      })
      await engine.signal('a')
      await engine.signal('b', null)
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.signal('c', undefined)
      await world.parked('r')
      await engine.signal('d', null)
      assert.deepEqual(await world.output('r'), ['undefined', 'null', 'undefined', 'null'])
    })

    test('payloads of one token are taken first in, first out', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        const got: unknown[] = []
        for (let i = 0; i < 6; i++) got.push(await ctx.waitForSignal('q'))
        return got
      })
      for (let i = 0; i < 4; i++) await engine.signal('q', i)
      await engine.start('w', null, 'r')
      await world.parked('r')
      for (let i = 4; i < 6; i++) await engine.signal('q', i)
      assert.deepEqual(await world.output('r'), [0, 1, 2, 3, 4, 5])
    })

    test('a signal answers the state after the turn it caused', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        const next = await ctx.waitForSignal('go')
        if (next === 'fail') throw new Error('told to')
        if (next === 'wait') await ctx.waitForSignal('more')
        return next
      })
      for (const id of ['wait', 'fail', 'end']) {
        await engine.start('w', null, id)
        await world.parked(id)
        const answer = await engine.signal('go', id)
        if (id === 'end') assert.deepEqual(answer, { runId: id, status: 'completed', output: id })
        if (id === 'wait') assert.deepEqual(answer, { runId: id, status: 'suspended' })
        if (id === 'fail') {
          assert.containsSubset(answer, { status: 'failed', error: { message: 'told to' } })
        }
      }
      assert.isNull(await engine.signal('nobody', 1))
    })

    test('tokens that begin alike are different tokens', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, token: string) => ctx.waitForSignal(token))
      const tokens = ['a', 'ab', 'A', 'a%', 'a_', 'a:b', 'ä', 'a ']
      for (const token of tokens) {
        await engine.start('w', token, `r:${token}`)
        await world.parked(`r:${token}`)
      }
      for (const token of tokens.toReversed()) {
        await engine.signal(token, `for ${token}`)
        assert.equal(await world.output(`r:${token}`), `for ${token}`)
      }
    })
  })
}
