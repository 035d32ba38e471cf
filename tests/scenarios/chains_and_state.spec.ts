/*
 * Published values, captures, and chains of runs that continue as new.
 */
import { test } from '@japa/runner'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`State and chains | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('the latest value published under a key is read, during the run and after it', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        for (const percent of [0, 50]) await ctx.setEvent('progress', { percent })
        await ctx.setEvent('other', 'x')
        await ctx.waitForSignal('go')
        await ctx.setEvent('progress', { percent: 100 })
        await ctx.setEvent('nothing', undefined)
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.deepEqual(await engine.getEvent('r', 'progress'), { percent: 50 })
      assert.equal(await engine.getEvent('r', 'other'), 'x')
      assert.isUndefined(await engine.getEvent('r', 'prog'))
      await engine.signal('go')
      await world.ended('r')
      assert.deepEqual(await engine.getEvent('r', 'progress'), { percent: 100 })
      assert.isUndefined(await engine.getEvent('r', 'nothing'))
      assert.isUndefined(await engine.getEvent('other-run', 'progress'))
    })

    test('reading a value moves no run', async ({ assert }) => {
      const engine = world.engine()
      let bodies = 0
      engine.register('w', '1', async (ctx) => {
        bodies += 1
        await ctx.setEvent('k', 1)
        await ctx.waitForSignal('go')
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      for (let i = 0; i < 3; i++) await engine.getEvent('r', 'k')
      await world.quiet()
      assert.equal(bodies, 1)
    })

    test('captures are made once and the same ever after', async ({ assert }) => {
      const engine = world.engine()
      const seen: unknown[][] = []
      let made = 0
      engine.register('w', '1', async (ctx) => {
        const values = [
          await ctx.now(),
          await ctx.sideEffect(() => ++made),
          await ctx.sideEffect(async () => `async ${++made}`),
          await ctx.now(),
        ]
        seen.push(values)
        await ctx.sleep(1000)
        await ctx.waitForSignal('go')
        return values
      })
      const begun = world.time.now
      await engine.start('w', null, 'r')
      await world.parked('r')
      world.time.jump(5000)
      await engine.resumeDueTimers()
      await world.parked('r')
      await engine.signal('go')
      await world.ended('r')
      assert.isAtLeast(seen.length, 3)
      for (const values of seen) assert.deepEqual(values, [begun, 1, 'async 2', begun])
      const timeline = await world.timeline('r')
      assert.deepEqual(
        timeline.slice(0, 4).map(([seq, name]) => [seq, name]),
        [
          [0, 'now'],
          [1, 'sideEffect'],
          [2, 'sideEffect'],
          [3, 'now'],
        ]
      )
    })

    test('a side effect that fails stays failed', async ({ assert }) => {
      const engine = world.engine()
      let made = 0
      engine.register('w', '1', async (ctx) => {
        const how = await ctx
          .sideEffect(() => {
            made += 1
            throw new Error('no dice')
          })
          .catch((error: Error) => error.message)
        await ctx.waitForSignal('go')
        return how
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.signal('go')
      assert.equal(await world.output('r'), 'no dice')
      assert.equal(made, 1)
    })

    test('a chain hands its input on, each link with a history of its own', async ({ assert }) => {
      const engine = world.engine()
      const events = world.eventsOf(engine)
      engine.register('w', '1', async (ctx, n: number) => {
        await ctx.localStep(`link ${n}`, () => n)
        return n < 3 ? ctx.continueAsNew(n + 1) : `end at ${ctx.runId}`
      })
      await engine.start('w', 0, 'r')
      const result = await engine.waitForRun('r', { terminal: true })
      assert.deepEqual(result, { runId: 'r~3', status: 'completed', output: 'end at r~3' })
      for (const [i, id] of ['r', 'r~1', 'r~2', 'r~3'].entries()) {
        const run = await world.run(id)
        assert.deepInclude(run, { status: 'completed', input: i })
        assert.deepEqual(await world.timeline(id), [[0, `link ${i}`, 'completed']])
        if (i < 3) assert.notProperty(run, 'output')
      }
      assert.deepEqual(
        events.filter((event) => event.type === 'run.completed').map((event) => event.runId),
        ['r', 'r~1', 'r~2', 'r~3']
      )
    })

    test('the next link inherits what belongs to the chain, on the newest version', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.continueAsNew('next'), { tags: ['static'] })
      engine.register('w', '2', async (ctx) => {
        await ctx.waitForSignal('never')
      })
      await engine.start('w', null, 'r', {
        version: '1',
        namespace: 'blue',
        tags: ['mine', 'durable:reserved'],
        priority: 7,
        searchAttributes: { customer: 'c1', vip: true, n: 3 },
        origin: 'some-package',
      })
      const next = await world.parked('r~1')
      assert.containsSubset(next, {
        workflow: 'w',
        workflowVersion: '2',
        input: 'next',
        namespace: 'blue',
        tags: ['static', 'mine'],
        priority: 7,
        searchAttributes: { customer: 'c1', vip: true, n: 3 },
        origin: 'some-package',
      })
      assert.lengthOf(next.tags!, 2)
    })

    test('the hand-over is one act: a crash leaves the old link or the new one', async ({
      assert,
    }) => {
      for (const moment of ['before', 'after'] as const) {
        const [doomed, living] = [world.engine(), world.engine()]
        for (const engine of [doomed, living]) {
          engine.register('w', '1', async (ctx, n: number) =>
            n === 0 ? ctx.continueAsNew(1) : 'done'
          )
        }
        const id = `r-${moment}`
        world.gate(doomed).around('commitTurn', async (proceed) => {
          if (moment === 'after') await proceed()
          return world.crash(doomed)
        })
        await doomed.start('w', 0, id)
        await world.quiet()
        assert.equal(await world.status(id), moment === 'after' ? 'completed' : 'running')
        const next = await world.store.getRun(`${id}~1`)
        assert.equal(next?.status, moment === 'after' ? 'pending' : undefined)
        world.time.jump(30_001)
        await living.recoverIncomplete()
        await living.runPending()
        assert.equal(await world.output(`${id}~1`), 'done')
      }
    }).skip(!kind.complete, 'without commitTurn a hand-over is several writes')

    test('a hand-over of several writes that a crash cuts short is completed by recovery', async ({
      assert,
    }) => {
      for (let cut = 0; ; cut++) {
        const [doomed, living] = [world.engine(), world.engine()]
        for (const engine of [doomed, living]) {
          engine.register('w', '1', async (ctx, n: number) =>
            n === 0 ? ctx.continueAsNew(1) : 'done'
          )
        }
        const id = `r${cut}`
        let crashed = false
        await world.store.createRun({
          id,
          workflow: 'w',
          workflowVersion: '1',
          status: 'pending',
          input: 0,
          createdAt: new Date(world.time.now),
          updatedAt: new Date(world.time.now),
        })
        world.gate(doomed).watch(async ({ index }) => {
          if (index !== cut) return
          crashed = true
          await world.crash(doomed)
        })
        void doomed.runOne(id)
        await world.quiet()
        if (!crashed) break
        // Without commitTurn a successor is held back for a day, in case its link does not complete.
        for (const ms of [30_001, 30_001, 86_400_000]) {
          world.time.jump(ms)
          await living.recoverIncomplete()
          await living.runPending()
          await living.resumeDueTimers()
          await world.quiet()
        }
        const link = await world.run(id)
        assert.equal(link.status, 'completed', `cut at ${cut}`)
        const next = await world.store.getRun(`${id}~1`)
        assert.isNotNull(next, `cut at ${cut}`)
        assert.deepInclude(next, { status: 'completed', output: 'done' }, `cut at ${cut}`)
        await world.crash(living)
      }
    })

    test('a cancel of the newest link ends a chain; an old id tells where it ended', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, n: number) => {
        if (n === 2) await ctx.waitForSignal('never')
        return ctx.continueAsNew(n + 1)
      })
      await engine.start('w', 0, 'r')
      await world.parked('r~2')
      const waiting = engine.waitForRun('r', { terminal: true })
      await engine.cancel('r~2')
      assert.deepEqual(await waiting, {
        runId: 'r~2',
        status: 'cancelled',
        error: { message: 'cancelled' },
      })
      assert.deepInclude(await engine.waitForRun('r~1', { terminal: true }), { runId: 'r~2' })
      assert.equal(await world.status('r'), 'completed')
    })

    test('a run id that looks like a link is a run of its own', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, n: number) =>
        n > 0 ? ctx.continueAsNew(n - 1) : 'done'
      )
      await engine.start('w', 1, 'x~5')
      const result = await engine.waitForRun('x~5', { terminal: true })
      assert.deepInclude(result, { runId: 'x~6', output: 'done' })
    })

    if (kind.complete) {
      test('a chain meets a run that has its next id already: it fails, and that run is not touched', async ({
        assert,
      }) => {
        const engine = world.engine()
        engine.register('w', '1', async (ctx, n: number) =>
          n > 0 ? ctx.continueAsNew(n - 1) : 'mine'
        )
        engine.register('other', '1', async () => 'theirs')
        await engine.start('other', null, 'r~1')
        await world.ended('r~1')
        await engine.start('w', 1, 'r')
        await world.ended('r')
        await world.quiet()
        assert.deepInclude(await world.errorOf('r'), {
          message: 'run r cannot continue as new: another run has the id "r~1"',
          code: 'id_taken',
        })
        assert.deepInclude(await world.run('r~1'), { workflow: 'other', output: 'theirs' })
      })
    }

    test('a run cannot be its own child', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.child('w', null, ctx.runId))
      await engine.start('w', null, 'r')
      await world.ended('r')
      assert.match((await world.errorOf('r'))!.message, /is the id of this very run/)
    })

    test('an undo list does not travel to the next link', async ({ assert }) => {
      const engine = world.engine()
      const undone: string[] = []
      engine.register('w', '1', async (ctx, n: number) => {
        await ctx.localStep(`do ${n}`, () => n, { compensate: () => void undone.push(`undo ${n}`) })
        if (n === 0) return ctx.continueAsNew(1)
        throw new Error('no')
      })
      await engine.start('w', 0, 'r')
      assert.deepInclude(await engine.waitForRun('r', { terminal: true }), { status: 'failed' })
      assert.deepEqual(undone, ['undo 1'])
    })
  })
}
