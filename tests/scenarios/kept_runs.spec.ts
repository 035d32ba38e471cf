/*
 * What a process keeps of suspended runs, decoded histories and live bodies, changes what a turn costs
 * and nothing else; and it is not used once anybody else took a turn.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, until, useWorld, type World } from '../helpers/engines.ts'

type Body = (ctx: WorkflowCtx) => Promise<unknown>

/** Bodies, and the news that moves them to their end. */
const PROGRAMS: Record<string, { body: Body; news: string[] }> = {
  'a line of everything': {
    news: ['step charge 5', 'tick 1000', 'signal go hello', 'step ship 6', 'signal end x'],
    body: async (ctx) => {
      const at = await ctx.now()
      const charged = await ctx.step<number>('charge', { at: at > 0 })
      const local = await ctx.localStep('local', () => charged + 1)
      await ctx.setEvent('progress', local)
      await ctx.sleep(1000)
      const go = await ctx.waitForSignal('go', { timeoutMs: 60_000 })
      const fresh = await ctx.patched('fresh')
      const shipped = await ctx.step<number>('ship', go)
      const end = await ctx.waitForSignal('end')
      return { local, go, fresh, shipped, end }
    },
  },
  'branches that overtake each other': {
    news: ['step b1 1', 'step a1 2', 'step a2 3', 'step b2 4', 'signal end x'],
    body: async (ctx) => {
      const branch = async (name: string) => {
        const first = await ctx.step<number>(`${name}1`, name)
        await ctx.localStep(`${name} local`, () => first)
        return ctx.step<number>(`${name}2`, first)
      }
      const all = await Promise.all([branch('a'), branch('b')])
      await ctx.waitForSignal('end')
      return all
    },
  },
  'failures, caught and retried': {
    news: ['fail flaky', 'fail flaky', 'fail hopeless', 'tick 61000', 'signal end x'],
    body: async (ctx) => {
      const caught: string[] = []
      const note = (error: Error & { code?: string }) => {
        if (error.name === 'WorkflowSuspended') throw error
        caught.push(error.message)
      }
      await ctx.step('flaky', 1, { retries: 2 }).catch(note)
      await ctx.localStep('local', () => Promise.reject(new Error('local'))).catch(note)
      await ctx.step('hopeless', 1).catch(note)
      await ctx.waitForSignal('nobody', { timeoutMs: 60_000 }).catch(note)
      await ctx.waitForSignal('end')
      return caught
    },
  },
  'a race and its loser': {
    news: ['step slow 1', 'signal go x', 'signal end x'],
    body: async (ctx) => {
      const won = await Promise.race([ctx.waitForSignal('go'), ctx.step('slow', 1)])
      await ctx.localStep('after', () => won)
      await ctx.waitForSignal('end')
      return won
    },
  },
  'a saga that fails in the end': {
    news: ['step reserve 1', 'signal end x'],
    body: async (ctx) => {
      await ctx.localStep('one', () => 1, { compensate: () => {} })
      await ctx.step('reserve', 1)
      await ctx.localStep('two', () => 2, { compensate: () => {} })
      await ctx.waitForSignal('end')
      throw new Error('in the end')
    },
  },
}

async function bring(world: World, engine: WorkflowEngine, news: string): Promise<void> {
  const [what, name, value] = news.split(' ')
  if (what === 'step' || what === 'fail') {
    const task = await until(
      () => world.held.sent.find((sent) => sent.name === name && !answered.has(sent)),
      `a task of ${name}`
    )
    answered.add(task)
    await world.quiet()
    if (what === 'step') await world.held.complete(task, Number(value))
    else await world.held.fail(task, `${name} failed`)
  } else if (what === 'signal') {
    await engine.signal(name, value)
  } else {
    world.time.jump(Number(name))
    await engine.resumeDueTimers()
  }
  await world.quiet()
}
const answered = new WeakSet<object>()

for (const kind of await storesUnderTest()) {
  test.group(`Kept runs | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    for (const [title, { body, news }] of Object.entries(PROGRAMS)) {
      test(`${title}: cold, warm and live leave the same history`, async ({ assert }) => {
        const histories: unknown[] = []
        for (const mode of ['cold', 'warm', 'live'] as const) {
          const id = `r-${mode}`
          const born = () => {
            const engine = world.engine({
              transport: 'held',
              continuations: mode === 'live' ? {} : false,
            })
            let bodies = 0
            engine.register('w', '1', async (ctx) => {
              bodies += 1
              return body(ctx)
            })
            return { engine, bodies: () => bodies, heard: world.eventsOf(engine) }
          }
          let alive = born()
          const lives = [alive]
          await alive.engine.start('w', null, id)
          await world.quiet()
          for (const piece of news) {
            if (mode === 'cold') {
              await world.crash(alive.engine)
              alive = born()
              lives.push(alive)
            }
            await bring(world, alive.engine, piece)
          }
          const run = await world.ended(id)
          const rows = await world.rows(id)
          const heard = lives.flatMap((life) => life.heard)
          if (mode === 'live') assert.equal(alive.bodies(), 1)
          histories.push({
            status: run.status,
            output: run.output,
            error: run.error?.message,
            rows: rows.map(({ seq, name, kind: of, status, attempts, order, output, error }) => ({
              seq,
              name,
              kind: of,
              status,
              attempts,
              order,
              output: name === 'now' ? 'some time' : output,
              error: error?.message, // prettier-ignore
            })),
            events: heard.map(({ type, name, seq }) => `${type} ${name} ${seq}`),
          })
          await world.crash(alive.engine)
        }
        const [cold, warm, live] = histories
        assert.deepEqual(warm, cold)
        assert.deepEqual(live, cold)
      })
    }

    test('a kept history is read on from where it ends', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      const gate = world.gate(engine)
      engine.register('w', '1', async (ctx) => {
        for (let i = 0; i < 5; i++) await ctx.step('s', i)
      })
      await engine.start('w', null, 'r')
      for (let n = 1; n <= 5; n++) {
        const task = await world.held.task('s', n)
        await world.quiet()
        await world.held.complete(task)
      }
      await world.ended('r')
      assert.equal(gate.calls.get('listCheckpointsForReplay') ?? 0, 0)
      assert.isAtMost(gate.calls.get('listCheckpointsAt') ?? 0, 5)
    }).skip(!kind.complete, 'without claimRun nothing is kept')

    for (const continuations of [false, {}] as const) {
      const kept = continuations ? 'a live body' : 'a history'

      test(`${kept} that another engine has overtaken is not used`, async ({ assert }) => {
        const engines = [0, 1].map(() => world.engine({ continuations }))
        const ran: number[] = []
        for (const [i, engine] of engines.entries()) {
          engine.register('w', '1', async (ctx) => {
            const got: unknown[] = []
            for (let n = 0; n < 6; n++) {
              got.push(await ctx.waitForSignal('go'))
              got.push(await ctx.localStep(`by whom ${n}`, () => i))
            }
            ran.push(i)
            return got
          })
        }
        await engines[0].start('w', null, 'r')
        for (const [n, i] of [0, 1, 0, 0, 1, 0].entries()) {
          await world.parked('r')
          await engines[i].signal('go', `s${n}`)
        }
        const expected = [0, 1, 0, 0, 1, 0].flatMap((i, n) => [`s${n}`, i])
        assert.deepEqual(await world.output('r'), expected)
        assert.deepEqual(ran, [0])
      })

      test(`${kept} is not used after an operator brought the run back`, async ({ assert }) => {
        const engines = [0, 1].map(() => world.engine({ continuations }))
        let broken = true
        for (const engine of engines) {
          engine.register('w', '1', async (ctx) => {
            const first = await ctx.waitForSignal('first')
            const value = await ctx.localStep('flaky', () => {
              if (broken) throw new Error('broken')
              return 'fixed'
            })
            return [first, value, await ctx.waitForSignal('second')]
          })
        }
        await engines[0].start('w', null, 'r')
        await world.parked('r')
        await engines[1].signal('first', 1)
        assert.equal(await world.status('r'), 'failed')
        broken = false
        await engines[1].requeue('r')
        await world.parked('r')
        await engines[0].signal('second', 2)
        assert.deepEqual(await world.output('r'), [1, 'fixed', 2])
      })
    }

    test('a live body is let go when its workflow is registered anew', async ({ assert }) => {
      const engine = world.engine({ continuations: {} })
      const cleanups: string[] = []
      const registerAs = (name: string) =>
        engine.register('w', '1', async (ctx) => {
          try {
            return `${name} ${await ctx.waitForSignal<string>('go')}`
          } finally {
            cleanups.push(name)
          }
        })
      registerAs('old')
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.deepEqual(cleanups, [])
      registerAs('new')
      await world.quiet()
      assert.deepEqual(cleanups, ['old'])
      await engine.signal('go', 'code')
      assert.equal(await world.output('r'), 'new code')
    })

    test('live bodies are bounded in number and age, and let go by a drain', async ({ assert }) => {
      const engine = world.engine({ continuations: { max: 2, idleMs: '1m' } })
      const unwound: string[] = []
      engine.register('w', '1', async (ctx) => {
        try {
          return await ctx.waitForSignal(`go:${ctx.runId}`)
        } finally {
          unwound.push(ctx.runId)
        }
      })
      for (const id of ['a', 'b', 'c']) {
        await engine.start('w', null, id)
        await world.parked(id)
      }
      assert.deepEqual(unwound, ['a'])
      await world.time.advance(90_001)
      assert.deepEqual(unwound, ['a', 'b', 'c'])
      await engine.start('w', null, 'd')
      await world.parked('d')
      await engine.drain()
      await world.quiet()
      assert.deepEqual(unwound, ['a', 'b', 'c', 'd'])
      const next = world.engine()
      next.register('w', '1', async (ctx) => ctx.waitForSignal(`go:${ctx.runId}`))
      for (const id of ['a', 'b', 'c', 'd']) {
        await next.signal(`go:${id}`, id)
        assert.equal(await world.output(id), id)
      }
      assert.equal(world.time.pending, 0)
    })

    test('a live body that was unwound writes nothing more', async ({ assert }) => {
      const [first, second] = [world.engine({ continuations: {} }), world.engine()]
      const errors: unknown[] = []
      first.register('w', '1', async (ctx) => {
        await ctx.waitForSignal('go').catch(async (error: unknown) => {
          errors.push(error)
          await ctx.localStep('too late', () => errors.push('ran')).catch(() => {})
        })
        await ctx.setEvent('who', 'the unwound').catch(() => {})
        return 'the unwound'
      })
      second.register('w', '1', async (ctx) => {
        await ctx.waitForSignal('go')
        return 'the other'
      })
      await first.start('w', null, 'r')
      await world.parked('r')
      await second.signal('go')
      assert.equal(await world.output('r'), 'the other')
      await first.drain()
      await world.quiet()
      assert.lengthOf(errors, 1)
      assert.deepEqual(await world.timeline('r'), [[0, 'signal:go', 'completed']])
    })

    test('a live body that moves by itself gets its turn', async ({ assert }) => {
      const engine = world.engine({ continuations: {} })
      const elsewhere = deferred<string>()
      engine.register('w', '1', async (ctx) => {
        const first = await Promise.race([ctx.waitForSignal<string>('go'), elsewhere.promise])
        return ctx.localStep('after', () => first)
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      elsewhere.resolve('by itself')
      assert.equal(await world.output('r'), 'by itself')
    })

    test('a live wait whose place was taken over is asked for again at the next turn', async ({
      assert,
    }) => {
      const engine = world.engine({ continuations: {} })
      engine.register('w', '1', async (ctx) => {
        await ctx.waitForSignal('shared')
        return ctx.runId
      })
      for (const id of ['first', 'second']) {
        await engine.start('w', null, id)
        await world.parked(id)
      }
      await engine.signal('shared')
      assert.equal(await world.output('second'), 'second')
      assert.isNull(await engine.signal('shared'))
      world.time.jump(300_001)
      await engine.resumeDueTimers()
      assert.equal(await world.output('first'), 'first')
    })
  })
}
