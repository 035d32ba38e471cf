/*
 * The situations that broke waits for signals, for everything a body can wait for.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { type Moment, storesUnderTest, useWorld } from '../helpers/engines.ts'

interface Wait {
  /** Takes position 0 first. */
  wait(ctx: WorkflowCtx): Promise<unknown>
  answer(engine: WorkflowEngine, runId: string, payload: string): Promise<unknown>
}

const WAITS: Record<string, Wait> = {
  'a signal': {
    wait: (ctx) => ctx.waitForSignal(`s:${ctx.runId}`),
    answer: (engine, runId, payload) => engine.signal(`s:${runId}`, payload),
  },
  'an event': {
    wait: async (ctx) => {
      const event = await ctx.waitForEvent<{ payload: string }>('e', { match: { run: ctx.runId } })
      return event.payload
    },
    answer: (engine, run, payload) => engine.publishEvent('e', { run, payload }),
  },
  'an update': {
    wait: (ctx) => ctx.onUpdate('u'),
    answer: (engine, runId, payload) => engine.update(runId, 'u', payload),
  },
  'a task': {
    wait: (ctx) => ctx.task('t', async () => {}),
    answer: (engine, runId, payload) => engine.completeTask(runId, 't', payload),
  },
  'a webhook': {
    wait: (ctx) => ctx.webhook().wait(),
    answer: (engine, runId, payload) => engine.signal(`wh:${runId}:0`, payload),
  },
  'a child': {
    wait: (ctx) => ctx.child('kid', ctx.runId, `${ctx.runId}-kid`),
    answer: (engine, runId, payload) => engine.signal(`kid:${runId}`, payload),
  },
}

const OFFLINE = { dispatch: () => {} }

for (const kind of await storesUnderTest()) {
  for (const [what, { wait, answer }] of Object.entries(WAITS)) {
    test.group(`Waiting for ${what} | ${kind.name}`, (group) => {
      const world = useWorld(group, kind)

      function engineWith(
        body: (ctx: WorkflowCtx) => Promise<unknown>,
        options: Parameters<typeof world.engine>[0] = {}
      ): WorkflowEngine {
        const engine = world.engine(options)
        engine.register('w', '1', body)
        engine.register('kid', '1', async (ctx, of: string) => ctx.waitForSignal(`kid:${of}`))
        return engine
      }

      test('branches keep the order of their answers after a crash', async ({ assert }) => {
        const body = async (ctx: WorkflowCtx) => {
          const order: unknown[] = []
          await Promise.all([
            wait(ctx).then((payload) => order.push(payload)),
            ctx.waitForSignal('b').then((payload) => order.push(payload)),
          ])
          order.push(await ctx.waitForSignal('go'))
          return order
        }
        const [doomed, living] = [engineWith(body), engineWith(body)]
        await doomed.start('w', null, 'r')
        await world.parked('r')
        await doomed.signal('b', 'second')
        await world.parked('r')
        await answer(doomed, 'r', 'first')
        await world.parked('r')
        await world.crash(doomed)
        await living.signal('go', 'third')
        assert.deepEqual(await world.output('r'), ['second', 'first', 'third'])
      })

      for (const [winner, first] of [
        ['the answer', 'answer'],
        ['the sleep', 'sleep'],
      ]) {
        test(`a race that ${winner} won is won by it every time`, async ({ assert }) => {
          const body = async (ctx: WorkflowCtx) => {
            const won = await Promise.race([wait(ctx), ctx.sleep(1000).then(() => 'slept')])
            await ctx.waitForSignal('go')
            return won
          }
          const [one, other] = [engineWith(body), engineWith(body)]
          const acts: Record<string, () => Promise<unknown>> = {
            answer: () => answer(one, 'r', 'answered'),
            sleep: async () => {
              world.time.jump(1000)
              await one.resumeDueTimers()
            },
          }
          await one.start('w', null, 'r')
          await world.parked('r')
          await acts[first]()
          await world.parked('r')
          await acts[first === 'answer' ? 'sleep' : 'answer']()
          await world.parked('r')
          await other.signal('go')
          assert.equal(await world.output('r'), first === 'answer' ? 'answered' : 'slept')
        })
      }

      test('an answer at any moment of the waiting turn arrives once', async ({ assert }) => {
        const body = async (ctx: WorkflowCtx) => [await wait(ctx), await ctx.waitForSignal('go')]
        let moments = 0
        for (let k = 0; ; k++) {
          const [waiting, answering] = [engineWith(body), engineWith(body)]
          const id = `m${k}`
          const told: Promise<unknown>[] = []
          const stop = world.gate(waiting).watch(async (moment: Moment) => {
            if (moment.index !== k || !(await world.store.getRun(id))) return
            told.push(answer(answering, id, id))
            await told[0]
          })
          await waiting.start('w', null, id)
          await world.reached(id, 'suspended')
          await world.quiet()
          stop()
          await Promise.all(told)
          if (told.length === 0) await answer(answering, id, id)
          await world.quiet()
          await answering.signal('go', k)
          assert.deepEqual(await world.output(id), [id, k], id)
          moments = k
          if (told.length === 0 && k > 1) break
        }
        assert.isAbove(moments, 3)
      }).timeout(60_000)

      test('an answer that comes before the run begins is kept', async ({ assert }) => {
        const body = async (ctx: WorkflowCtx) => wait(ctx)
        const idle = engineWith(body, { runDispatcher: OFFLINE })
        await idle.start('w', null, 'r')
        await answer(idle, 'r', 'early')
        const engine = engineWith(body)
        await engine.runPending()
        assert.equal(await world.output('r'), 'early')
      })

      test('a body that catches the suspension stays suspended and completes later', async ({
        assert,
      }) => {
        const engine = engineWith(async (ctx) => {
          try {
            return await wait(ctx)
          } catch {
            return 'caught'
          }
        })
        await engine.start('w', null, 'r')
        await world.parked('r')
        await answer(engine, 'r', 'answered')
        assert.equal(await world.output('r'), 'answered')
      })

      test('a store that refuses for half a minute loses no answer', async ({ assert }) => {
        const body = async (ctx: WorkflowCtx) => wait(ctx)
        const engine = engineWith(body)
        await engine.start('w', null, 'r')
        await world.parked('r')
        world.gate(engine).down()
        for (let second = 0; second < 30; second++) {
          await assert.rejects(() => answer(engine, 'r', 'lost'), /ECONNREFUSED/)
          await assert.rejects(() => engine.resumeDueTimers(), /ECONNREFUSED/)
          world.time.jump(1000)
        }
        world.gate(engine).up()
        await answer(engine, 'r', 'arrived')
        assert.equal(await world.output('r'), 'arrived')
      })
    })
  }
}
