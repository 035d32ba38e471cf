/*
 * Published events that meet waits at an awkward moment: an event reaches every run that waits for it, one
 * that meets nobody reaches exactly one later wait, and none is lost when a process dies.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { type Moment, storesUnderTest, useWorld, type World } from '../helpers/engines.ts'

const waitFor = async (ctx: WorkflowCtx, order: string) =>
  ctx.waitForEvent('paid', { match: { order } })

async function atEveryMoment(
  race: (at: (moment: Moment) => boolean, round: string) => Promise<boolean>
): Promise<number> {
  for (let k = 0; ; k++) {
    if (!(await race((moment) => moment.index === k, `m${k}`))) return k
  }
}

const buffered = async (world: World, name = 'paid') => {
  const events = await world.store.listBufferedEvents(name, 100)
  return events.map(({ payload }) => payload)
}

for (const kind of await storesUnderTest()) {
  test.group(`Events | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('an event published at any moment of the waiting turn arrives once', async ({
      assert,
    }) => {
      const [waiting, sending] = [world.engine(), world.engine()]
      for (const engine of [waiting, sending]) engine.register('w', '1', waitFor)
      const moments = await atEveryMoment(async (at, id) => {
        let sent = false
        const stop = world.gate(waiting).watch(async (moment) => {
          if (!at(moment)) return
          sent = true
          await sending.publishEvent('paid', { order: id, n: 1 })
        })
        await waiting.start('w', id, id)
        await world.reached(id, 'suspended', 'completed')
        await world.quiet()
        stop()
        if (!sent) await sending.publishEvent('paid', { order: id, n: 1 })
        assert.deepEqual(await world.output(id), { order: id, n: 1 }, id)
        await world.quiet()
        assert.deepEqual(await world.store.listSignalWaiters(''), [], id)
        assert.deepEqual(await buffered(world), [], id)
        return sent
      })
      assert.isAbove(moments, 4)
    })

    test('a wait that begins at any moment of the publishing gets the event', async ({
      assert,
    }) => {
      const waiting = world.engine({ runDispatcher: { dispatch: () => {} } })
      const sending = world.engine()
      for (const engine of [waiting, sending]) engine.register('w', '1', waitFor)
      const moments = await atEveryMoment(async (at, id) => {
        let begun = false
        await waiting.start('w', id, id)
        const stop = world.gate(sending).watch(async (moment) => {
          if (begun || !at(moment)) return
          begun = true
          await waiting.runOne(id)
        })
        await sending.publishEvent('paid', { order: id })
        stop()
        if (!begun) await waiting.runOne(id)
        assert.deepEqual(await world.output(id), { order: id }, id)
        await world.quiet()
        assert.deepEqual(await buffered(world), [], id)
        return begun
      })
      assert.isAbove(moments, 2)
    }).tags(['@race-18', '@control-35'])

    if (kind.complete) {
      test('a process that dies at any moment of claiming loses no event and takes it once', async ({
        assert,
      }) => {
        const moments = await atEveryMoment(async (at, id) => {
          const [doomed, living] = [world.engine(), world.engine()]
          for (const engine of [doomed, living]) engine.register('w', '1', waitFor)
          await living.publishEvent('paid', { order: id })
          let died = false
          world.gate(doomed).watch(async (moment) => {
            if (died || !at(moment)) return
            died = true
            await world.crash(doomed)
          })
          void doomed.start('w', id, id)
          if (!died) await world.quiet()
          if (died) {
            await living.start('w', id, id)
            world.time.jump(31_000)
            await living.runPending()
            await living.recoverIncomplete()
            await living.resumeDueTimers()
          }
          assert.deepEqual(await world.output(id), { order: id }, id)
          assert.deepEqual(await buffered(world), [], id)
          await world.quiet()
          return died
        })
        assert.isAbove(moments, 4)
      })
        .timeout(60_000)
        .tags(['@race-22'])
    }

    test('everybody who waits gets it; a match that differs does not', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', waitFor)
      engine.register('any', '1', async (ctx) => ctx.waitForEvent('paid'))
      await engine.start('w', 'a', 'a1')
      await engine.start('w', 'a', 'a2')
      await engine.start('w', 'b', 'b1')
      await engine.start('any', null, 'x')
      for (const id of ['a1', 'a2', 'b1', 'x']) await world.parked(id)
      assert.equal(await engine.publishEvent('paid', { order: 'a' }), 3)
      for (const id of ['a1', 'a2', 'x']) {
        assert.deepEqual(await world.output(id), { order: 'a' })
      }
      assert.equal(await world.status('b1'), 'suspended')
      assert.deepEqual(await buffered(world), [])
    })

    test('a match compares nested values by structure, and refuses what is no object', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) =>
        ctx.waitForEvent('deep', { match: { who: { a: 1, b: [2, null] }, gone: undefined } })
      )
      await engine.start('w', null, 'r')
      await world.parked('r')
      for (const payload of [null, 'text', 7, [], {}, { who: { a: 1, b: [2] } }]) {
        assert.equal(await engine.publishEvent('deep', payload, { buffer: false }), 0)
      }
      assert.equal(await engine.publishEvent('deep', { who: { b: [2, null], a: 1 }, more: 1 }), 1)
      assert.deepEqual(await world.output('r'), { who: { a: 1, b: [2, null] }, more: 1 })
    })

    test('a match too long for its token is compared all the same', async ({ assert }) => {
      const engine = world.engine()
      const long = { text: 'x'.repeat(400), n: 1 }
      engine.register('w', '1', async (ctx, n: number) =>
        ctx.waitForEvent('paid', { match: { ...long, n } })
      )
      await engine.start('w', 1, 'r1')
      await engine.start('w', 2, 'r2')
      for (const id of ['r1', 'r2']) await world.parked(id)
      assert.equal(await engine.publishEvent('paid', { ...long, n: 2, ok: true }), 1)
      assert.deepEqual(await world.output('r2'), { ...long, n: 2, ok: true })
      assert.equal(await world.status('r1'), 'suspended')
      await engine.publishEvent('paid', { ...long, n: 3 })
      await engine.start('w', 3, 'r3')
      assert.deepEqual(await world.output('r3'), { ...long, n: 3 })
    })

    test('what is buffered goes to one later wait, oldest first, and only where it matches', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', waitFor)
      for (const n of [1, 2]) {
        world.time.jump(1)
        assert.equal(await engine.publishEvent('paid', { order: 'a', n }), 0)
      }
      assert.equal(await engine.publishEvent('paid', { order: 'b' }, { buffer: false }), 0)
      await engine.start('w', 'b', 'b1')
      await world.parked('b1')
      await engine.start('w', 'a', 'a1')
      assert.deepEqual(await world.output('a1'), { order: 'a', n: 1 })
      assert.deepEqual(await buffered(world), [{ order: 'a', n: 2 }])
      await engine.start('w', 'a', 'a2')
      assert.deepEqual(await world.output('a2'), { order: 'a', n: 2 })
      assert.deepEqual(await buffered(world), [])
    }).tags(['@race-23', '@control-35'])

    test('events that do not match stand in nobody’s way', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', waitFor)
      for (const order of ['x', 'y', 'z', 'y']) {
        world.time.jump(1)
        await engine.publishEvent('paid', { order })
      }
      const others = Array.from({ length: 40 }, (_, i) => `other ${i}`)
      for (const order of [...others, 'last']) {
        world.time.jump(1)
        await engine.publishEvent('paid', { order })
      }
      for (const order of ['z', 'last']) {
        await engine.start('w', order, order)
        assert.deepEqual(await world.output(order), { order })
      }
      const left = (await buffered(world)) as { order: string }[]
      assert.deepEqual(
        left.map(({ order }) => order),
        ['x', 'y', 'y', ...others]
      )
    }).tags(['@race-24', '@control-35'])

    test('an event and a wait that a crash left unpaired are paired by the timer pass', async ({
      assert,
    }) => {
      const [doomed, engine] = [world.engine(), world.engine()]
      for (const each of [doomed, engine]) each.register('w', '1', waitFor)
      // The publisher finds no wait, one registers, and the publisher dies before it looks again.
      const died = deferred<void>()
      world.gate(doomed).around('bufferEvent', async (proceed) => {
        await engine.start('w', 'a', 'r')
        await world.parked('r')
        await proceed()
        await world.crash(doomed)
        died.resolve()
      })
      void doomed.publishEvent('paid', { order: 'a' })
      await died.promise
      await world.parked('r')
      assert.lengthOf(await buffered(world), 1)
      world.time.jump(300_001)
      await engine.resumeDueTimers()
      assert.deepEqual(await world.output('r'), { order: 'a' })
      await world.quiet()
      assert.deepEqual(await buffered(world), [])
      assert.deepEqual(await world.store.listSignalWaiters(''), [])
    }).tags(['@race-22', '@control-36'])

    test('of many waits that begin together one takes the one event', async ({ assert }) => {
      const engines = [world.engine(), world.engine()]
      for (const engine of engines)
        engine.register('any', '1', async (ctx) => ctx.waitForEvent('e'))
      await engines[0].publishEvent('e', 'once')
      const ids = Array.from({ length: 8 }, (_, i) => `r${i}`)
      await Promise.all(ids.map((id, i) => engines[i % 2].start('any', null, id)))
      await world.quiet()
      const runs = await Promise.all(ids.map((id) => world.reached(id, 'suspended', 'completed')))
      const outputs = runs.filter((run) => run.status === 'completed').map((run) => run.output)
      assert.deepEqual(outputs, ['once'])
      assert.deepEqual(await buffered(world, 'e'), [])
    }).tags(['@race-23', '@control-35'])

    test('a bounded wait: an event in time wins, afterwards it times out and stays so', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        try {
          return await ctx.waitForEvent('late', { timeoutMs: 1000 })
        } catch (error) {
          await ctx.waitForSignal(ctx.runId)
          const { code, token } = error as { code: string; token: string }
          return [code, token]
        }
      })
      await engine.start('w', null, 'r')
      await engine.start('w', null, 'q')
      for (const id of ['r', 'q']) await world.parked(id)
      world.time.jump(1000)
      await engine.resumeDueTimers()
      await world.quiet()
      assert.equal(await engine.publishEvent('late', 1), 0)
      await engine.signal('q')
      assert.deepEqual(await world.output('q'), ['signal_timeout', 'event:late'])
      assert.deepEqual(await buffered(world, 'late'), [1])
      await engine.start('w', null, 's')
      assert.equal(await world.output('s'), 1)
    })

    test('an event older than eventBufferTtl is never delivered', async ({ assert }) => {
      const engine = world.engine({ eventBufferTtl: '1h' })
      engine.register('any', '1', async (ctx) => ctx.waitForEvent('e'))
      await engine.publishEvent('e', 'old')
      world.time.jump(3_600_001)
      await engine.publishEvent('e', 'new')
      await engine.start('any', null, 'r')
      assert.equal(await world.output('r'), 'new')
    })

    test('subscribers are started once per id, whatever one of them does', async ({ assert }) => {
      const engine = world.engine()
      const onEvent = ['order.placed']
      engine.register('ship', '1', async (_, order) => order, { onEvent })
      engine.register('ship', '2', async (_, order) => ['v2', order], { onEvent })
      const refuses = () => 'not today'
      engine.register('bill', '1', async () => {}, { onEvent, validateInput: refuses })
      engine.register('other', '1', async () => {}, { onEvent: ['order.gone'] })
      assert.equal(await engine.publishEvent('order.placed', { n: 1 }, { id: 'e1' }), 1)
      assert.equal(await engine.publishEvent('order.placed', { n: 1 }, { id: 'e1' }), 1)
      assert.deepEqual(await world.output('evt:e1:ship'), ['v2', { n: 1 }])
      assert.equal(await engine.countRuns(), 1)
      assert.lengthOf(world.reports, 2)
      assert.deepEqual(await buffered(world, 'order.placed'), [])
    })

    test('waits in a race and after another wait', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        const first = await Promise.race([
          ctx.waitForEvent('a'),
          ctx.waitForEvent('b', { timeoutMs: 5000 }),
        ])
        const second = await ctx.waitForEvent('c')
        return [first, second]
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.publishEvent('b', 'B')
      await world.parked('r')
      await engine.publishEvent('c', 'C')
      assert.deepEqual(await world.output('r'), ['B', 'C'])
    })

    test('garbage is refused before anything is written', async ({ assert }) => {
      const engine = world.engine()
      for (const name of ['', 'x'.repeat(121), 'a\u0000b', 7 as never]) {
        await assert.rejects(() => engine.publishEvent(name, 1), /publishEvent: the name/)
      }
      await assert.rejects(() => engine.publishEvent('e', 1n), /publishEvent: .*event "e"/)
      await assert.rejects(() => engine.publishEvent('e', 1, { id: '' }), /publishEvent: the id/)
      assert.deepEqual(await buffered(world, 'e'), [])
      const bad: [string, unknown, RegExp][] = [
        ['', {}, /ctx.waitForEvent: the name/],
        ['e', { timeoutMs: -1 }, /timeoutMs/],
        ['e', { match: [] }, /match must be an object/],
        ['e', { match: { n: 1n } }, /the match of event "e"/],
      ]
      for (const [i, [name, options, message]] of bad.entries()) {
        engine.register('w', String(i + 1), async (ctx) => ctx.waitForEvent(name, options as never))
        await engine.start('w', null, `r${i}`)
        const run = await world.ended(`r${i}`)
        assert.match(run.error!.message, message)
        assert.deepEqual(await world.rows(`r${i}`), [])
      }
    })
  })
}
