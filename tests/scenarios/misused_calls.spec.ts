/*
 * Calls in a body that would do something else than was meant, or wait for ever: each is refused before a
 * position is taken, and the body may go on.
 */
import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Calls that are misused | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    /** The run of a body that is refused something. */
    const refusedIn = async (body: (ctx: WorkflowCtx) => Promise<unknown>) => {
      const engine = world.engine()
      engine.register('echo', '1', async (_, input) => input)
      engine.register('w', '1', body)
      await engine.start('w', null, 'r')
      return world.ended('r')
    }

    test('a child id that is no string is not left out', async ({ assert }) => {
      const calls = [
        (ctx: WorkflowCtx, id: unknown) => ctx.child('echo', 1, id as string),
        (ctx: WorkflowCtx, id: unknown) => ctx.startChild('echo', 1, id as string),
      ]
      for (const call of calls) {
        for (const id of [7, Symbol('id'), true]) {
          const run = await refusedIn((ctx) => call(ctx, id))
          assert.equal(run.error?.code, 'invalid_argument')
          assert.match(run.error!.message, /the child id must be a string, got /)
          await world.store.deleteRuns(['r'])
        }
      }
    })

    test('a mode that a fan does not have', async ({ assert }) => {
      const run = await refusedIn((ctx) => ctx.all('echo', [1], { mode: 'failfast' as 'failFast' }))
      assert.equal(run.error?.code, 'invalid_argument')
      assert.equal(
        run.error?.message,
        "ctx.all: mode must be 'waitAll' or 'failFast', got failfast"
      )
    })

    test('a second task of one name, which nobody could report on', async ({ assert }) => {
      const engine = world.engine()
      const handedOver: string[] = []
      engine.register('twice', '1', async (ctx) => {
        const first = await ctx.task('review', async () => void handedOver.push('first'))
        return ctx.task('review', async () => void handedOver.push(`after ${String(first)}`))
      })
      engine.register('at once', '1', async (ctx) => {
        const review = () => ctx.task('review', async () => void handedOver.push('one'))
        const second = review().then(() => 'reported')
        return Promise.all([second, review().catch((error: { code?: string }) => error.code)])
      })
      await engine.start('twice', null, 'a')
      await world.parked('a')
      await engine.completeTask('a', 'review', 'ok')
      const { error } = await world.ended('a')
      assert.equal(error?.code, 'invalid_argument')
      assert.match(error!.message, /ctx\.task\("review"\) was called before in this run/)

      await engine.start('at once', null, 'b')
      await world.parked('b')
      await engine.completeTask('b', 'review', 'ok')
      assert.deepEqual(await world.output('b'), ['reported', 'invalid_argument'])
      assert.deepEqual(handedOver, ['first', 'one'])
    })

    test('a task whose hand-over failed gives its name back, in a replay too', async ({
      assert,
    }) => {
      let handOvers = 0
      const engineOf = () => {
        const engine = world.engine()
        engine.register('again', '1', async (ctx) => {
          const review = () =>
            ctx.task('review', async () => {
              handOvers++
              if (handOvers === 1) throw Object.assign(new Error('nobody is in'), { code: 'away' })
            })
          try {
            return await review()
          } catch (error) {
            if ((error as { code?: string }).code !== 'away') throw error
            return review()
          }
        })
        return engine
      }
      const engine = engineOf()
      await engine.start('again', null, 'r')
      await world.parked('r')
      await world.crash(engine)
      await engineOf().completeTask('r', 'review', 'at last')
      assert.equal(await world.output('r'), 'at last')
      assert.equal(handOvers, 2)
    })
  })
}
