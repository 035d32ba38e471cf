/*
 * Waits that are open when a run ends: their rows go with it, or everything that races or is cancelled would
 * leave some behind. Those of a failed run stay: it may be re-opened and wait on.
 */
import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Waits left open | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    const waits = async (runId: string) => {
      const waiters = await world.store.listSignalWaiters('')
      return waiters.filter((waiter) => waiter.runId === runId).map(({ token }) => token)
    }

    test('the loser of a race waits no longer once the run is over', async ({ assert }) => {
      const engine = world.engine()
      engine.register('race', '1', (ctx: WorkflowCtx) =>
        Promise.race([
          ctx.waitForSignal('first'),
          ctx.waitForSignal('second'),
          ctx.waitForEvent('third'),
        ])
      )
      await engine.start('race', null, 'r')
      await engine.waitForRun('r')
      assert.lengthOf(await waits('r'), 3)
      await engine.signal('second', 2)
      const run = await world.ended('r')
      assert.equal(run.output, 2)
      await world.quiet()
      assert.deepEqual(await waits('r'), [])
      assert.isNull(await engine.signal('first', 1), 'kept for a later wait')
    })

    test('a run that nobody waits for leaves no word of its end', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 'done')
      engine.register('f', '1', async () => {
        throw new Error('broken')
      })
      for (const name of ['w', 'f']) {
        await engine.start(name, null, name)
        await world.ended(name)
        await world.quiet()
        assert.isNull(await world.store.takeBufferedSignal(`child:${name}`))
      }
    }).tags(['@control-55'])

    test('a link that continues as new leaves none', async ({ assert }) => {
      const engine = world.engine()
      engine.register('chain', '1', async (ctx: WorkflowCtx, last: boolean) => {
        if (last) return 'done'
        await Promise.race([ctx.waitForSignal('open'), ctx.localStep('go', () => null)])
        return ctx.continueAsNew(true)
      })
      await engine.start('chain', false, 'c')
      await world.ended('c~1')
      await world.quiet()
      assert.deepEqual(await waits('c'), [])
    })

    test('a cancelled run leaves none, with undos or without', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', (ctx: WorkflowCtx) => ctx.waitForSignal(`never ${ctx.runId}`))
      for (const compensate of [true, false]) {
        const runId = `compensate ${compensate}`
        await engine.start('w', null, runId)
        await engine.waitForRun(runId)
        await engine.cancel(runId, { compensate })
        const { status } = await world.ended(runId)
        assert.equal(status, 'cancelled')
        await world.quiet()
        assert.deepEqual(await waits(runId), [], runId)
      }
    })

    // A store of the required members lists no cancel that was left half way.
    const listed = kind.complete ? test : undefined
    listed?.('a process that dies right after a cancel leaves none either', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', (ctx: WorkflowCtx) => ctx.waitForSignal('never'))
      await engine.start('w', null, 'r')
      await engine.waitForRun('r')
      // What the cancel of a process wrote that ended before anything followed from it.
      await world.store.updateRunIf('r', ['suspended'], {
        status: 'cancelled',
        error: { message: 'cancelled' },
        cancelRequestedAt: Date.now(),
      })
      await engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(await waits('r'), [])
    })

    test('a failed run keeps them, and waits on when it is re-opened', async ({ assert }) => {
      const engine = world.engine()
      let broken = true
      engine.register('w', '1', async (ctx: WorkflowCtx) => {
        const [signal] = await Promise.all([
          ctx.waitForSignal('later'),
          ctx.localStep('work', () => {
            if (broken) throw new Error('broken')
          }),
        ])
        return signal
      })
      await engine.start('w', null, 'r')
      const failed = await world.ended('r')
      assert.equal(failed.status, 'failed')
      await world.quiet()
      assert.deepEqual(await waits('r'), ['later'])
      broken = false
      await engine.requeue('r')
      await engine.waitForRun('r')
      await engine.signal('later', 'now')
      const run = await world.ended('r')
      assert.equal(run.output, 'now')
    })
  })
}
