/*
 * Bodies that ask for something else than history holds, and the ways to change a body on purpose.
 */
import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

type Body = (ctx: WorkflowCtx) => Promise<unknown>

/** Every primitive that takes a position, under a name of its own. */
const PRIMITIVES: Record<string, Body> = {
  '"s" (remote)': (ctx) => ctx.step('s', 1),
  '"l" (local)': (ctx) => ctx.localStep('l', () => 1),
  '"now" (local)': (ctx) => ctx.now(),
  '"sideEffect" (local)': (ctx) => ctx.sideEffect(() => 1),
  '"sleep" (sleep)': (ctx) => ctx.sleep(1),
  '"signal:tok" (signal)': (ctx) => ctx.waitForSignal('tok'),
  '"timeout:tok" (sleep)': (ctx) => ctx.waitForSignal('tok', { timeoutMs: 60_000 }),
  '"event:k" (local)': (ctx) => ctx.setEvent('k', 1),
}

type Bounded = (ctx: WorkflowCtx, timeoutMs?: number) => Promise<unknown>

const BOUNDED: Record<string, Bounded> = {
  'a signal': (ctx, timeoutMs) => ctx.waitForSignal('tok', { timeoutMs }),
  'an event': (ctx, timeoutMs) => ctx.waitForEvent('e', { timeoutMs }),
  'an update': (ctx, timeoutMs) => ctx.onUpdate('u', { timeoutMs }),
  'a webhook': (ctx, timeoutMs) => ctx.webhook().wait({ timeoutMs }),
}

for (const kind of await storesUnderTest()) {
  test.group(`Changed code | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('every primitive notices a row of another one, names both and fails the run', async ({
      assert,
    }) => {
      for (const [recorded, first] of Object.entries(PRIMITIVES)) {
        for (const [asked, second] of Object.entries(PRIMITIVES)) {
          if (recorded === asked) continue
          // A wait without a deadline leaves no row to disagree with.
          if (recorded.startsWith('"signal')) continue
          const id = `${recorded}->${asked}`
          const engine = world.engine({ transport: 'held' })
          let changed = false
          engine.register('w', '1', async (ctx) => {
            await (changed ? second : first)(ctx)
            await ctx.waitForSignal('go')
          })
          await engine.start('w', null, id)
          await world.parked(id)
          changed = true
          await engine.resume(id)
          const { status, error } = await world.run(id)
          assert.equal(status, 'failed', id)
          assert.equal(error?.code, 'non_determinism', id)
          assert.include(error?.message, `run ${id}, position 0: history recorded ${recorded}`)
          assert.include(error?.message, `the code now asks for ${asked}`)
          assert.match(error!.message, /new `version`.*ctx\.patched/)
          await world.crash(engine)
        }
      }
    }).tags(['@scenario-16'])

    for (const [what, wait] of Object.entries(BOUNDED)) {
      test(`a bound that ${what} gets or loses while a run waits there is a change of its code`, async ({
        assert,
      }) => {
        for (const was of [undefined, 60_000]) {
          const engine = world.engine()
          let timeoutMs: number | undefined = was
          const id = was ? 'loses' : 'gets'
          engine.register('w', '1', async (ctx) => {
            const first = wait(ctx, timeoutMs)
            await ctx.localStep('beside', () => 1)
            await first
          })
          await engine.start('w', null, id)
          await world.parked(id)
          timeoutMs = was ? undefined : 60_000
          await engine.resume(id)
          const { status, error } = await world.run(id)
          assert.equal(status, 'failed', id)
          assert.equal(error?.code, 'non_determinism', id)
          await world.crash(engine)
        }
      }).tags(['@race-51'])
    }

    test('a body that draws lots fails where it differs, whoever executes it again', async ({
      assert,
    }) => {
      let drawn = 0
      const draw = () => `lot ${drawn++}`
      const bodies: Record<string, Body> = {
        timer: async (ctx) => {
          await ctx.localStep(draw(), () => 1)
          await ctx.sleep(1000)
        },
        signal: async (ctx) => {
          await ctx.localStep(draw(), () => 1)
          await ctx.waitForSignal('go')
        },
        result: async (ctx) => {
          await ctx.localStep(draw(), () => 1)
          await ctx.step('remote', 1)
        },
        recovery: async (ctx) => {
          await ctx.localStep(draw(), () => 1)
          await ctx.localStep('hangs', () => new Promise(() => {}))
        },
        order: async (ctx) => {
          const names = drawn++ % 2 ? ['lot 1', 'lot 0'] : ['lot 0', 'lot 1']
          await Promise.all(names.map((name) => ctx.localStep(name, () => 1)))
          await ctx.waitForSignal('go')
        },
      }
      for (const [how, body] of Object.entries(bodies)) {
        drawn = 0
        const [first, next] = [0, 1].map(() => world.engine({ transport: 'held' }))
        for (const engine of [first, next]) engine.register(how, '1', body)
        await first.start(how, null, how)
        await world.reached(how, how === 'recovery' ? 'running' : 'suspended')
        await world.quiet()
        await world.crash(first)
        world.time.jump(60_000)
        const waiting = next.waitForRun(how, { terminal: true, timeoutMs: 60_000 })
        if (how === 'timer') await next.resumeDueTimers()
        else if (how === 'result') await world.held.complete(`${how}:1`, 1, world.port(next))
        else if (how === 'recovery') await next.recoverIncomplete()
        else await next.signal('go')
        const { status, error, lockedBy } = await world.ended(how)
        assert.deepEqual([status, error?.code, lockedBy], ['failed', 'non_determinism', undefined])
        const where = `run ${how}, position 0: history recorded "lot 0" (local)`
        assert.include(error?.message, where)
        assert.include(error?.message, '"lot 1"')
        assert.propertyVal(await waiting, 'status', 'failed')
        await world.crash(next)
      }
    }).tags(['@scenario-16'])

    test('a body that swallows the mismatch fails all the same, and undoes nothing', async ({
      assert,
    }) => {
      const engine = world.engine()
      const undone: string[] = []
      let changed = false
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1, { compensate: () => void undone.push('a') })
        await ctx.localStep(changed ? 'c' : 'b', () => 1).catch(() => {})
        await ctx.waitForSignal('go').catch(() => {})
        return 'swallowed'
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      changed = true
      await engine.resume('r')
      await world.quiet()
      assert.containsSubset(await world.run('r'), {
        status: 'failed',
        error: { code: 'non_determinism' },
      })
      assert.deepEqual(undone, [])
      assert.notProperty(await world.run('r'), 'lockedBy')
    }).tags(['@scenario-16'])

    test('a run that mismatched goes on once the old code is back', async ({ assert }) => {
      const engine = world.engine()
      const registerAs = (name: string) =>
        engine.register('w', '1', async (ctx) => {
          const a = await ctx.localStep(name, () => 'a')
          return a + (await ctx.waitForSignal<string>('go'))
        })
      registerAs('old')
      await engine.start('w', null, 'r')
      await world.parked('r')
      registerAs('new')
      await engine.signal('go', 'b')
      assert.equal(await world.status('r'), 'failed')
      registerAs('old')
      await engine.requeue('r')
      assert.equal(await world.output('r'), 'ab')
    })

    test('new runs take the newest version, running ones keep theirs', async ({ assert }) => {
      const engine = world.engine()
      for (const version of ['9', '10', '2']) {
        engine.register('w', version, async (ctx) => {
          await ctx.waitForSignal(`go:${ctx.runId}`)
          return version
        })
      }
      await engine.start('w', null, 'pinned', { version: '2' })
      await engine.start('w', null, 'newest')
      await world.parked('pinned')
      await world.parked('newest')
      engine.register('w', '11', async () => '11')
      for (const id of ['pinned', 'newest']) await engine.signal(`go:${id}`)
      assert.equal(await world.output('pinned'), '2')
      assert.equal(await world.output('newest'), '10')
      await engine.start('w', null, 'later')
      assert.equal(await world.output('later'), '11')
    })

    test('a patch is on for new runs and off for those that passed it before', async ({
      assert,
    }) => {
      const engine = world.engine()
      const old: Body = async (ctx) => {
        const a = await ctx.localStep('a', () => 'a')
        await ctx.waitForSignal(`one:${ctx.runId}`)
        const b = await ctx.localStep('b', () => 'b')
        await ctx.waitForSignal(`two:${ctx.runId}`)
        return a + b
      }
      const patched: Body = async (ctx) => {
        const a = await ctx.localStep('a', () => 'a')
        await ctx.waitForSignal(`one:${ctx.runId}`)
        const b = (await ctx.patched('better-b'))
          ? await ctx.localStep('better b', () => 'B')
          : await ctx.localStep('b', () => 'b')
        await ctx.waitForSignal(`two:${ctx.runId}`)
        return a + b
      }
      const go = async (id: string, which: string) => {
        await world.parked(id)
        await engine.signal(`${which}:${id}`)
      }
      engine.register('w', '1', old)
      await engine.start('w', null, 'past it')
      await go('past it', 'one')
      await engine.start('w', null, 'before it')
      await world.parked('before it')
      engine.register('w', '1', patched)
      await go('past it', 'two')
      assert.equal(await world.output('past it'), 'ab')
      await go('before it', 'one')
      await go('before it', 'two')
      assert.equal(await world.output('before it'), 'aB')
      await engine.start('w', null, 'new')
      await go('new', 'one')
      await go('new', 'two')
      assert.equal(await world.output('new'), 'aB')
      assert.deepInclude(await world.timeline('new'), [2, 'patch:better-b', 'completed'])
    })

    test('two patches at one place are told apart, a renamed one is a mismatch', async ({
      assert,
    }) => {
      const engine = world.engine()
      let ids = ['one', 'two']
      engine.register('w', '1', async (ctx) => {
        const answers = []
        for (const id of ids) answers.push(await ctx.patched(id))
        await ctx.waitForSignal('go')
        return answers
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      ids = ['two', 'one']
      await engine.resume('r')
      const error = await world.errorOf('r')
      assert.equal(error?.code, 'non_determinism')
      assert.include(error?.message, '"patch:one"')
      ids = ['one', 'two']
      await engine.requeue('r')
      await world.parked('r')
      await engine.signal('go')
      assert.deepEqual(await world.output('r'), [true, true])
    })

    test('a body that asks for less than its history completes', async ({ assert }) => {
      const engine = world.engine()
      let shorter = false
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1)
        if (!shorter) await ctx.waitForSignal('go')
        return 'done'
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      shorter = true
      await engine.resume('r')
      assert.equal(await world.output('r'), 'done')
    })
  })
}
