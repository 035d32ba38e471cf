/*
 * Updates, tasks, webhooks and breakpoints: answers from outside that come before, during or after the
 * wait, twice, or when the process that handed the work over is gone.
 */
import { test } from '@japa/runner'
import type { DurableWebhook, WorkflowCtx } from '../../src/types/ctx.ts'
import { type Moment, storesUnderTest, useWorld } from '../helpers/engines.ts'

async function atEveryMoment(
  race: (at: (moment: Moment) => boolean, round: string) => Promise<boolean>
): Promise<number> {
  for (let k = 0; ; k++) {
    if (!(await race((moment) => moment.index === k, `m${k}`))) return k
  }
}

for (const kind of await storesUnderTest()) {
  test.group(`Tasks | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    const noLeftovers = async (token: string) => ({
      waiters: await world.store.listSignalWaiters(token),
      buffered: await world.store.takeBufferedSignal(token),
    })
    const NOTHING = { waiters: [], buffered: null }

    test('an answer at any moment of the turn arrives once, and the work is handed over once', async ({
      assert,
    }) => {
      const [waiting, reporting] = [world.engine(), world.engine()]
      const handedOver: string[] = []
      for (const engine of [waiting, reporting]) {
        engine.register('w', '1', async (ctx, id: string) =>
          ctx.task('review', async () => void handedOver.push(id))
        )
      }
      const moments = await atEveryMoment(async (at, id) => {
        let raced = false
        let report: Promise<unknown> = Promise.resolve(null)
        const stop = world.gate(waiting).watch(async (moment) => {
          if (!at(moment)) return
          raced = true
          report = reporting.completeTask(id, 'review', { ok: id })
          await report
        })
        await waiting.start('w', id, id)
        await world.reached(id, 'suspended', 'completed')
        await world.quiet()
        stop()
        // Nobody knows the run before it is there.
        if ((await report) === null) await reporting.completeTask(id, 'review', { ok: id })
        assert.deepEqual(await world.output(id), { ok: id }, id)
        await world.quiet()
        assert.deepEqual(handedOver.splice(0), [id])
        assert.deepEqual(await noLeftovers(`task:${id}:review`), NOTHING, id)
        return raced
      })
      assert.isAbove(moments, 4)
    }).timeout(30_000)

    test('a second answer changes nothing and is not kept; neither is one for a finished run', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        const first = await ctx.task('t', async () => {})
        return [first, await ctx.waitForSignal('go')]
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.equal(await engine.completeTask('nobody', 't', 1), null)
      await engine.completeTask('r', 't', 1)
      await world.parked('r')
      const late = await engine.failTask('r', 't', 'too late')
      assert.equal(late?.status, 'suspended')
      await engine.signal('go', 'on')
      assert.deepEqual(await world.output('r'), [1, 'on'])
      assert.deepInclude(await engine.completeTask('r', 't', 2), { status: 'completed' })
      assert.deepEqual(await noLeftovers('task:r:t'), NOTHING)
    })

    test('a failure throws FatalError; the hand-over is retried and its own failure thrown', async ({
      assert,
    }) => {
      const engine = world.engine()
      let attempts = 0
      engine.register('told', '1', async (ctx) => ctx.task('t', async () => {}))
      engine.register('broken', '1', async (ctx) =>
        ctx.task(
          't',
          async () => {
            attempts += 1
            throw new Error('unreachable')
          },
          { retries: 2 }
        )
      )
      await engine.start('told', null, 'r')
      await world.parked('r')
      await engine.failTask('r', 't', 'no')
      assert.deepInclude(await world.errorOf('r'), {
        message: 'task "t" failed: no',
        code: 'fatal',
      })
      await engine.start('broken', null, 'q')
      await world.quiet()
      await world.time.advance(10)
      const run = await world.ended('q')
      assert.equal(run.error!.message, 'unreachable')
      assert.equal(attempts, 2)
      assert.deepEqual(await world.timeline('r'), [
        [0, 'task:dispatch:t', 'completed'],
        [1, 'signal:task:r:t', 'completed'],
      ])
    })

    test('an answer that outruns the hand-over is kept', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) =>
        ctx.task('t', async () => void (await engine.completeTask(ctx.runId, 't', 'fast')))
      )
      await engine.start('w', null, 'r')
      assert.equal(await world.output('r'), 'fast')
    })

    test('its undo runs when the run fails later', async ({ assert }) => {
      const engine = world.engine()
      const undone: string[] = []
      engine.register('w', '1', async (ctx) => {
        await ctx.task('t', async () => {}, { compensate: async () => void undone.push('t') })
        throw new Error('no')
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.completeTask('r', 't', 1)
      await world.ended('r')
      assert.deepEqual(undone, ['t'])
    })

    test('side by side in one body', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) =>
        Promise.all(['a', 'b', 'c'].map((name) => ctx.task(name, async () => {})))
      )
      await engine.start('w', null, 'r')
      await world.parked('r')
      for (const name of ['c', 'a', 'b']) await engine.completeTask('r', name, name.toUpperCase())
      assert.deepEqual(await world.output('r'), ['A', 'B', 'C'])
    })
  })

  test.group(`Updates | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a validated argument arrives now or when the run gets there', async ({ assert }) => {
      const engine = world.engine()
      engine.registerUpdateValidator('w', 'price', (n: number) => (n > 0 ? '' : 'must be positive'))
      engine.registerUpdateValidator('w', 'name', () => {
        throw new Error('never')
      })
      engine.register('w', '1', async (ctx) => [
        await ctx.onUpdate('price'),
        await ctx.onUpdate('note'),
      ])
      assert.deepEqual(await engine.update('r', 'price', 1), {
        accepted: false,
        reason: 'run r not found',
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.deepEqual(await engine.update('r', 'price', 0), {
        accepted: false,
        reason: 'must be positive',
      })
      assert.deepEqual(await engine.update('r', 'name', 0), { accepted: false, reason: 'never' })
      assert.deepEqual(await engine.update('r', 'note', 'early'), { accepted: true, run: null })
      assert.equal(await world.status('r'), 'suspended')
      const answer = await engine.update('r', 'price', 5)
      assert.deepInclude(answer, { accepted: true })
      assert.deepEqual(await world.output('r'), [5, 'early'])
      assert.deepEqual(await engine.update('r', 'price', 5), {
        accepted: false,
        reason: 'run r is completed',
      })
      assert.deepEqual(await world.timeline('r'), [
        [0, 'signal:update:r:price', 'completed'],
        [1, 'signal:update:r:note', 'completed'],
      ])
    })

    test('a bounded one times out', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.onUpdate('x', { timeoutMs: 50 }))
      await engine.start('w', null, 'r')
      await world.parked('r')
      world.time.jump(50)
      await engine.resumeDueTimers()
      await world.ended('r')
      assert.deepInclude(await world.errorOf('r'), { code: 'signal_timeout' })
    })
  })

  test.group(`Webhooks | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    const webhookUrl = (token: string) => `https://shop.test/hooks/${token}`

    test('the token is there before anybody waits; a callback that comes first is kept', async ({
      assert,
    }) => {
      const engine = world.engine({ webhookUrl })
      const sent: unknown[] = []
      engine.register('w', '1', async (ctx) => {
        const hook = ctx.webhook<string>()
        await ctx.localStep('send', () => void sent.push(hook.url))
        const answer = await hook.wait()
        return [answer, await hook.wait()]
      })
      await engine.signal('wh:r:0', 'early')
      await engine.start('w', null, 'r')
      assert.deepEqual(await world.output('r'), ['early', 'early'])
      assert.deepEqual(sent, ['https://shop.test/hooks/wh:r:0'])
      assert.deepEqual(await world.timeline('r'), [
        [0, 'signal:wh:r:0', 'completed'],
        [1, 'send', 'completed'],
      ])
    })

    test('a callback at any moment of the waiting turn arrives once', async ({ assert }) => {
      const [waiting, calling] = [world.engine(), world.engine()]
      for (const engine of [waiting, calling]) {
        engine.register('w', '1', async (ctx) => {
          const hook = ctx.webhook()
          await ctx.localStep('send', () => {})
          return hook.wait({ timeoutMs: 60_000 })
        })
      }
      const moments = await atEveryMoment(async (at, id) => {
        let called = false
        const stop = world.gate(waiting).watch(async (moment) => {
          if (!at(moment)) return
          called = true
          await calling.signal(`wh:${id}:0`, id)
        })
        await waiting.start('w', null, id)
        await world.reached(id, 'suspended', 'completed')
        await world.quiet()
        stop()
        if (!called) await calling.signal(`wh:${id}:0`, id)
        assert.equal(await world.output(id), id)
        return called
      })
      assert.isAbove(moments, 4)
    }).timeout(30_000)

    test('a bounded wait times out, with the deadline at a position of its own', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        const hook = ctx.webhook()
        assert.isUndefined(hook.url)
        await ctx.localStep('send', () => {})
        try {
          return await hook.wait({ timeoutMs: 100 })
        } catch (error) {
          return [(error as { code: string }).code, await ctx.waitForSignal('go')]
        }
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      world.time.jump(100)
      await engine.resumeDueTimers()
      await world.parked('r')
      await engine.signal('wh:r:0', 'late')
      await engine.signal('go', 1)
      assert.deepEqual(await world.output('r'), ['signal_timeout', 1])
      assert.deepEqual(await world.timeline('r'), [
        [0, 'signal:wh:r:0', 'failed'],
        [1, 'send', 'completed'],
        [2, 'timeout:wh:r:0', 'completed'],
        [3, 'signal:go', 'completed'],
      ])
    }).tags(['@race-50'])

    for (const when of ['before the run', 'while it works', 'after it parked']) {
      test(`what follows a bounded wait has its position when called back ${when}`, async ({
        assert,
      }) => {
        const [engine, other] = [world.engine(), world.engine()]
        for (const each of [engine, other]) {
          each.register('w', '1', async (ctx) => {
            const hook = ctx.webhook<string>()
            await ctx.localStep('send', async () => {
              if (when === 'while it works') await other.signal(hook.token, 'body')
            })
            const body = await hook.wait({ timeoutMs: 60_000 })
            await ctx.localStep('after', () => {})
            await ctx.waitForSignal('go')
            return body
          })
        }
        if (when === 'before the run') await other.signal('wh:r:0', 'body')
        await engine.start('w', null, 'r')
        await world.parked('r')
        if (when === 'after it parked') await other.signal('wh:r:0', 'body')
        await world.parked('r')
        await world.crash(engine)
        await other.signal('go')
        assert.equal(await world.output('r'), 'body')
        assert.deepEqual(await world.timeline('r'), [
          [0, 'signal:wh:r:0', 'completed'],
          [1, 'send', 'completed'],
          [2, 'timeout:wh:r:0', 'completed'],
          [3, 'after', 'completed'],
          [4, 'signal:go', 'completed'],
        ])
      }).tags(['@race-50'])
    }

    test('two of them answer in the order in which they are called back', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        const hooks: DurableWebhook[] = [ctx.webhook(), ctx.webhook()]
        const order: unknown[] = []
        const waits = hooks.map(async (hook) => order.push(await hook.wait()))
        await Promise.all(waits)
        await ctx.waitForSignal('go')
        return order
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.signal('wh:r:1', 'b')
      await world.parked('r')
      await engine.signal('wh:r:0', 'a')
      await world.parked('r')
      await engine.signal('go')
      assert.deepEqual(await world.output('r'), ['b', 'a'])
    })

    test('one wait at a time, and none inside a step body', async ({ assert }) => {
      const engine = world.engine()
      engine.register('twice', '1', async (ctx) => {
        const hook = ctx.webhook()
        await Promise.all([hook.wait(), hook.wait()])
      })
      engine.register('inside', '1', async (ctx) => ctx.localStep('s', () => ctx.webhook().token))
      await engine.start('twice', null, 'r')
      await engine.start('inside', null, 'q')
      await world.ended('r')
      assert.match(
        (await world.errorOf('r'))!.message,
        /webhook wh:r:0 is being waited for already/
      )
      await world.ended('q')
      assert.deepInclude(await world.errorOf('q'), { code: 'nested_workflow_call' })
    })

    test('code that changed under it is not deterministic', async ({ assert }) => {
      const engine = world.engine()
      const body = (first: (ctx: WorkflowCtx) => Promise<unknown>) => async (ctx: WorkflowCtx) => {
        await first(ctx)
        return ctx.waitForSignal('go')
      }
      engine.register(
        'w',
        '1',
        body(async (ctx) => ctx.localStep('old', () => 1))
      )
      await engine.start('w', null, 'r')
      await world.parked('r')
      engine.register(
        'w',
        '1',
        body((ctx) => ctx.webhook().wait())
      )
      await engine.signal('go')
      await world.ended('r')
      assert.deepInclude(await world.errorOf('r'), { code: 'non_determinism' })
    })
  })

  test.group(`Breakpoints | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a run stands there until it is continued; saying so twice counts once', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        await ctx.breakpoint('before')
        await ctx.breakpoint()
        return 'done'
      })
      assert.equal(await engine.continue('r'), null)
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.deepEqual(await world.timeline('r'), [[0, 'breakpoint:before', 'pending']])
      await Promise.all([engine.continue('r'), engine.continue('r')])
      await world.parked('r')
      assert.deepEqual(await world.timeline('r'), [
        [0, 'signal:bp:r:0', 'completed'],
        [1, 'breakpoint', 'pending'],
      ])
      assert.deepInclude(await engine.continue('r'), { runId: 'r' })
      assert.equal(await world.output('r'), 'done')
      assert.equal(await engine.continue('r'), null)
      for (const token of ['bp:r:0', 'bp:r:1']) {
        assert.isNull(await world.store.takeBufferedSignal(token))
      }
    })

    test('continued at any moment of its turn', async ({ assert }) => {
      const [waiting, asking] = [world.engine(), world.engine()]
      for (const engine of [waiting, asking]) {
        engine.register('w', '1', async (ctx) => ctx.breakpoint().then(() => 'on'))
      }
      await atEveryMoment(async (at, id) => {
        let asked = false
        const stop = world.gate(waiting).watch(async (moment) => {
          if (!at(moment)) return
          asked = true
          await asking.continue(id)
        })
        await waiting.start('w', null, id)
        await world.quiet()
        stop()
        if ((await world.status(id)) !== 'completed') await asking.continue(id)
        assert.equal(await world.output(id), 'on', id)
        return asked
      })
    }).timeout(30_000)
  })
}
