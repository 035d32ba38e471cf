/*
 * The signal that unwinds a waiting body: what a body does with it changes nothing but the body.
 */
import { test } from '@japa/runner'
import { WorkflowSuspended } from '../../src/errors.ts'
import { isWorkflowControlFlowSignal } from '../../src/foundation/control_flow.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Suspension | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    const SWALLOWERS: Record<string, (ctx: WorkflowCtx) => Promise<unknown>> = {
      'returns': async (ctx) => {
        try {
          return await ctx.waitForSignal('go')
        } catch {
          return 'swallowed'
        }
      },
      'throws its own': async (ctx) => {
        try {
          return await ctx.waitForSignal('go')
        } catch {
          throw new Error('swallowed')
        }
      },
      'goes on with more calls': async (ctx) => {
        const got = await ctx.waitForSignal('go').catch(() => 'swallowed')
        if (got !== 'swallowed') return got
        await ctx.localStep('recorded by mistake', () => 1).catch(() => {})
        await ctx.setEvent('key', 'mistake').catch(() => {})
        await ctx.sleep(1).catch(() => {})
        return ctx.continueAsNew('mistake')
      },
      'wraps it': async (ctx) => {
        try {
          return await ctx.waitForSignal('go')
        } catch (cause) {
          throw new Error('wrapped', { cause })
        }
      },
      'settles everything': async (ctx) => {
        const [one] = await Promise.allSettled([ctx.waitForSignal('go'), ctx.sleep(5)])
        return one.status === 'fulfilled' ? one.value : 'swallowed'
      },
    }

    for (const [how, body] of Object.entries(SWALLOWERS)) {
      test(`a body that catches it and ${how} stays suspended and completes later`, async ({
        assert,
      }) => {
        const engine = world.engine()
        const events = world.eventsOf(engine)
        let bodies = 0
        engine.register('w', '1', async (ctx) => {
          bodies += 1
          return body(ctx)
        })
        await engine.start('w', null, 'r')
        await world.parked('r')
        assert.notInclude(JSON.stringify(await world.rows('r')), 'mistake')
        assert.isNull(await world.store.getRun('r~1'))
        world.time.jump(1000)
        await engine.resumeDueTimers()
        await world.parked('r')
        await engine.signal('go', 'payload')
        assert.equal(await world.output('r'), 'payload')
        assert.notInclude(JSON.stringify(await world.rows('r')), 'mistake')
        assert.notInclude(
          events.map((event) => event.type),
          'run.failed'
        )
        assert.isAtLeast(bodies, 2)
      }).tags(['@scenario-17', '@race-48'])
    }

    test('cleanup runs at every suspension, and can tell it from a failure', async ({ assert }) => {
      const engine = world.engine()
      const seen: string[] = []
      engine.register('w', '1', async (ctx) => {
        try {
          return await ctx.waitForSignal('go')
        } catch (error) {
          seen.push(isWorkflowControlFlowSignal(error) ? 'suspension' : 'failure')
          throw error
        } finally {
          seen.push('finally')
        }
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.deepEqual(seen, ['suspension', 'finally'])
      await engine.signal('go')
      await world.ended('r')
      assert.deepEqual(seen, ['suspension', 'finally', 'finally'])
    }).tags(['@race-48'])

    test('a signal of another copy of the package is recognised', ({ assert }) => {
      const stamp = { [Symbol.for('@agora/durable:control-flow')]: true }
      const foreign = Object.assign(new Error('suspended elsewhere'), stamp)
      assert.isTrue(isWorkflowControlFlowSignal(foreign))
      assert.isTrue(isWorkflowControlFlowSignal(new WorkflowSuspended(5)))
      for (const other of [new Error('no'), null, undefined, 'suspended', {}]) {
        assert.isFalse(isWorkflowControlFlowSignal(other))
      }
    }).tags(['@race-48'])

    test('the suspension tells the earliest deadline of what the body waits for', async ({
      assert,
    }) => {
      const engine = world.engine()
      const deadlines: unknown[] = []
      engine.register('w', '1', async (ctx) => {
        const waits = [ctx.sleep('1h'), ctx.sleep(90_000), ctx.waitForSignal('go')]
        await Promise.all(waits).catch((error: WorkflowSuspended) => {
          deadlines.push(error.wakeAt)
          throw error
        })
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.deepEqual(deadlines, [world.time.now + 90_000])
    })

    test('a suspension that does not belong to the body fails its run instead of hanging', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => {
        throw new WorkflowSuspended()
      })
      await engine.start('w', null, 'r')
      const run = await world.ended('r')
      assert.containsSubset(run, { status: 'failed', error: { code: 'foreign_suspension' } })
    })

    test('promises that a body drops are no unhandled rejections', async ({ assert }) => {
      const unhandled: unknown[] = []
      const note = (error: unknown) => void unhandled.push(error)
      process.on('unhandledRejection', note)
      try {
        const engine = world.engine()
        engine.register('w', '1', async (ctx) => {
          void ctx.sleep('1h')
          void ctx.waitForSignal('never')
          void ctx.localStep('fails', () => {
            throw new Error('dropped')
          })
          void ctx.sleep('nonsense')
          await ctx.waitForSignal('go')
          return 'done'
        })
        await engine.start('w', null, 'r')
        await world.parked('r')
        await engine.signal('go')
        assert.equal(await world.output('r'), 'done')
        await world.quiet()
      } finally {
        process.off('unhandledRejection', note)
      }
      assert.deepEqual(unhandled, [])
    })

    test('branches that a body left behind write nothing once it has ended', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        const slow = async () => {
          await ctx.localStep('first', () => 1)
          await ctx.localStep('second', () => 2)
        }
        slow().catch(() => {})
        return ctx.localStep('only', () => 'done')
      })
      await engine.start('w', null, 'r')
      assert.equal(await world.output('r'), 'done')
      await world.quiet()
      const timeline = JSON.stringify(await world.timeline('r'))
      assert.notInclude(timeline, 'pending')
      assert.notInclude(timeline, 'running')
    })

    test('a body that waits for something else than its context is waited for', async ({
      assert,
    }) => {
      const engine = world.engine()
      let open = (_: string) => {}
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1)
        const foreign = await new Promise<string>((resolve) => (open = resolve))
        return ctx.localStep('b', () => foreign)
      })
      await engine.start('w', null, 'r')
      await world.quiet()
      assert.equal(await world.status('r'), 'running')
      open('foreign')
      assert.equal(await world.output('r'), 'foreign')
    })
  })
}
