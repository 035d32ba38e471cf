/*
 * The situations that broke waits for signals, for everything a body can wait for.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { type Moment, storesUnderTest, useWorld } from '../helpers/engines.ts'

interface Wait {
  /** Takes position 0 first. */
  wait(ctx: WorkflowCtx): Promise<unknown>
  answer(engine: WorkflowEngine, runId: string, payload: string): Promise<unknown>
  bounded?(ctx: WorkflowCtx): Promise<unknown>
}

const BOUND = { timeoutMs: 60_000 }

const WAITS: Record<string, Wait> = {
  'a signal': {
    wait: (ctx) => ctx.waitForSignal(`s:${ctx.runId}`),
    bounded: (ctx) => ctx.waitForSignal(`s:${ctx.runId}`, BOUND),
    answer: (engine, runId, payload) => engine.signal(`s:${runId}`, payload),
  },
  'an event': {
    wait: async (ctx) => {
      const event = await ctx.waitForEvent<{ payload: string }>('e', { match: { run: ctx.runId } })
      return event.payload
    },
    bounded: async (ctx) => {
      const match = { run: ctx.runId }
      const event = await ctx.waitForEvent<{ payload: string }>('e', { match, ...BOUND })
      return event.payload
    },
    answer: (engine, run, payload) => engine.publishEvent('e', { run, payload }),
  },
  'an update': {
    wait: (ctx) => ctx.onUpdate('u'),
    bounded: (ctx) => ctx.onUpdate('u', BOUND),
    answer: (engine, runId, payload) => engine.update(runId, 'u', payload),
  },
  'a task': {
    wait: (ctx) => ctx.task('t', async () => {}),
    answer: (engine, runId, payload) => engine.completeTask(runId, 't', payload),
  },
  'a webhook': {
    wait: (ctx) => ctx.webhook().wait(),
    bounded: (ctx) => ctx.webhook().wait(BOUND),
    answer: (engine, runId, payload) => engine.signal(`wh:${runId}:0`, payload),
  },
  'a child': {
    wait: (ctx) => ctx.child('kid', ctx.runId, `${ctx.runId}-kid`),
    answer: (engine, runId, payload) => engine.signal(`kid:${runId}`, payload),
  },
}

const OFFLINE = { dispatch: () => {} }

for (const kind of await storesUnderTest()) {
  for (const [what, { wait, answer, bounded }] of Object.entries(WAITS)) {
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

      test('branches of several steps keep their order and positions after a crash', async ({
        assert,
      }) => {
        const body = async (ctx: WorkflowCtx) => {
          const order: unknown[] = []
          const branch = async (name: string, first: Promise<unknown>) => {
            order.push(await first)
            order.push(await ctx.localStep(`${name}1`, () => `${name}1`))
            order.push(await ctx.step<string>(name, `${name}2`))
            order.push(await ctx.localStep(`${name}3`, () => `${name}3`))
          }
          await Promise.all([branch('a', wait(ctx)), branch('b', ctx.waitForSignal('b'))])
          order.push(await ctx.waitForSignal('go'))
          return order
        }
        const held = { transport: 'held' } as const
        const [doomed, living] = [engineWith(body, held), engineWith(body, held)]
        await doomed.start('w', null, 'r')
        await world.parked('r')
        await doomed.signal('b', 'second')
        await world.parked('r')
        await answer(doomed, 'r', 'first')
        await world.parked('r')
        for (const name of ['a', 'b']) {
          await world.held.complete(await world.held.task(name), `${name}2`, world.port(doomed))
          await world.parked('r')
        }
        const before = await world.timeline('r')
        await world.crash(doomed)
        await living.signal('go', 'third')
        const seen = ['second', 'b1', 'first', 'a1', 'a2', 'a3', 'b2', 'b3']
        assert.deepEqual(await world.output('r'), [...seen, 'third'])
        assert.deepEqual(await world.timeline('r', before.length), before)
        assert.lengthOf(world.held.sent, 2)
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
      })
        .timeout(60_000)
        .tags(['@race-17'])

      test('an answer that comes before the run begins is kept', async ({ assert }) => {
        const body = async (ctx: WorkflowCtx) => wait(ctx)
        const idle = engineWith(body, { runDispatcher: OFFLINE })
        await idle.start('w', null, 'r')
        await answer(idle, 'r', 'early')
        const engine = engineWith(body)
        await engine.runPending()
        assert.equal(await world.output('r'), 'early')
      })

      test('an answer to a child run that has not begun to wait is kept', async ({ assert }) => {
        const gate = deferred<void>()
        const engine = engineWith(async (ctx) => {
          await gate.promise
          return wait(ctx)
        })
        engine.register('parent', '1', async (ctx) => [await ctx.child('w', null, 'c')])
        await engine.start('parent', null, 'p')
        await world.reached('c', 'running')
        await world.parked('p')
        await answer(engine, 'c', 'early')
        await world.quiet()
        gate.resolve()
        assert.deepEqual(await world.output('p'), ['early'])
        assert.deepEqual(await world.store.listSignalWaiters(''), [])
      })

      for (const [how, waits] of Object.entries({ unbounded: wait, bounded })) {
        if (!waits) continue
        test(`${how}, it takes the same positions however early the answer comes`, async ({
          assert,
        }) => {
          const body = async (ctx: WorkflowCtx) => {
            const answered = await waits(ctx)
            await ctx.localStep('after', () => {})
            await ctx.waitForSignal(`end:${ctx.runId}`)
            return answered
          }
          const histories: unknown[] = []
          for (const id of ['early', 'late']) {
            const idle = engineWith(body, { runDispatcher: OFFLINE })
            const engine = engineWith(body)
            await idle.start('w', null, id)
            if (id === 'early') await answer(idle, id, 'answered')
            await engine.runOne(id)
            await world.parked(id)
            if (id === 'late') await answer(engine, id, 'answered')
            await world.parked(id)
            await world.crash(engine)
            await engineWith(body).signal(`end:${id}`)
            assert.equal(await world.output(id), 'answered')
            const rows = await world.rows(id)
            histories.push(rows.map(({ seq, kind: of, status }) => [seq, of, status]))
          }
          assert.deepEqual(histories[0], histories[1])
        }).tags(['@race-25'])
      }

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
