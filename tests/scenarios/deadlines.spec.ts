/*
 * The deadline of a bounded wait is decided once, when the wait begins: what a later deploy or a later
 * replay thinks of its bound does not move it.
 */
import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

type Wait = (ctx: WorkflowCtx, timeoutMs: number) => Promise<unknown>

const WAITS: Record<string, Wait> = {
  'a signal': (ctx, timeoutMs) => ctx.waitForSignal('go', { timeoutMs }),
  'an event': (ctx, timeoutMs) => ctx.waitForEvent('go', { timeoutMs }),
  'an event that matches': (ctx, timeoutMs) =>
    ctx.waitForEvent('go', { match: { n: 1 }, timeoutMs }),
  'an update': (ctx, timeoutMs) => ctx.onUpdate('go', { timeoutMs }),
  'a webhook': (ctx, timeoutMs) => ctx.webhook().wait({ timeoutMs }),
}

const RECORDED_MS = 60_000

for (const kind of await storesUnderTest()) {
  test.group(`Deadlines | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    async function parkedUntil(runId: string) {
      const { wakeAt } = await world.parked(runId)
      return wakeAt
    }

    for (const [what, wait] of Object.entries(WAITS)) {
      for (const changedMs of [10_000, 600_000]) {
        const how = changedMs < RECORDED_MS ? 'shorter' : 'longer'
        test(`${what} waits until the recorded deadline, whatever ${how} bound the code has by then`, async ({
          assert,
        }) => {
          const body = (timeoutMs: number) => async (ctx: WorkflowCtx) => {
            const waited = wait(ctx, timeoutMs).catch((error) => (error as { code: string }).code)
            // News in between, which makes the run take a turn before its deadline.
            await ctx.waitForSignal('other')
            return waited
          }
          const before = world.engine()
          before.register('w', '1', body(RECORDED_MS))
          await before.start('w', null, 'r')
          const deadline = await parkedUntil('r')
          assert.equal(deadline, world.time.now + RECORDED_MS)
          await world.crash(before)
          const after = world.engine()
          after.register('w', '1', body(changedMs))
          world.time.jump(RECORDED_MS / 2)
          await after.signal('other')
          assert.equal(await parkedUntil('r'), deadline)
          world.time.jump(RECORDED_MS / 2 - 1)
          await after.resumeDueTimers()
          assert.equal(await parkedUntil('r'), deadline)
          world.time.jump(1)
          await after.resumeDueTimers()
          assert.equal(await world.output('r'), 'signal_timeout')
        }).tags(['@scenario-8', '@race-49'])
      }
    }
  })
}
