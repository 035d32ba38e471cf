/*
 * Several callers, several engines, one run.
 */
import { test } from '@japa/runner'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Starts that meet | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('of several starts of one id one creates the run, and all answer it', async ({
      assert,
    }) => {
      const engines = Array.from({ length: 4 }, () => world.engine())
      let bodies = 0
      for (const engine of engines) {
        engine.register('w', '1', async (_, n: number) => {
          bodies += 1
          return n
        })
      }
      const answers = await Promise.all(
        engines.flatMap((engine, i) => [engine.start('w', i, 'r'), engine.start('w', i + 10, 'r')])
      )
      assert.deepEqual([...new Set(answers.map((answer) => answer.runId))], ['r'])
      const run = await world.ended('r')
      await world.quiet()
      assert.equal(bodies, 1)
      assert.equal(run.output, run.input)
      assert.equal(await world.store.countRuns({}), 1)
    }).tags(['@race-44'])

    test('a start that loses the insert answers the winner and wakes nobody', async ({
      assert,
    }) => {
      const [loser, winner] = [world.engine(), world.engine()]
      for (const engine of [loser, winner]) engine.register('w', '1', async (_, n) => n)
      world.gate(loser).once('createRun', async (proceed) => {
        await winner.start('w', 'theirs', 'r')
        await world.ended('r')
        return proceed()
      })
      const answer = await loser.start('w', 'mine', 'r')
      assert.deepEqual(answer, { runId: 'r', status: 'completed', output: 'theirs' })
    }).tags(['@race-44'])

    test('a start of a known id answers its state: nothing new is created or run', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, input) => {
        if (input === 'fails') throw new Error('no')
        if (input === 'waits') await ctx.waitForSignal('go')
        return 'done'
      })
      await engine.start('w', 'fails', 'failed')
      await engine.start('w', 'waits', 'waiting')
      await engine.start('w', null, 'completed')
      for (const id of ['failed', 'completed']) await world.ended(id)
      await world.parked('waiting')
      assert.containsSubset(await engine.start('w', 1, 'failed'), {
        status: 'failed',
        error: { message: 'no' },
      })
      assert.deepInclude(await engine.start('w', 1, 'waiting'), { status: 'suspended' })
      assert.deepEqual(await engine.start('w', 1, 'completed'), {
        runId: 'completed',
        status: 'completed',
        output: 'done',
      })
      assert.deepInclude(await world.run('completed'), { input: null, turns: 1 })
    })

    test('two polls, a wake and an operator that reach for one run execute it once', async ({
      assert,
    }) => {
      const engines = [0, 1, 2].map(() => world.engine({ runDispatcher: { dispatch: () => {} } }))
      let bodies = 0
      for (const engine of engines) {
        engine.register('w', '1', async (ctx) => {
          bodies += 1
          return ctx.localStep('work', async () => 'done')
        })
      }
      await engines[0].start('w', null, 'r')
      await Promise.all([
        engines[0].runPending(),
        engines[1].runPending(),
        engines[1].runOne('r'),
        engines[2].resume('r'),
        engines[2].resume('r'),
      ])
      assert.equal(await world.output('r'), 'done')
      assert.equal(bodies, 1)
      assert.deepInclude(await world.run('r'), { turns: 1 })
    }).tags(['@control-60'])

    test('a run that becomes free while a claim of it is being refused is claimed by whoever asks then', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 'done')
      let refused = 0
      const refuse = async (proceed: () => Promise<unknown>) => {
        if (refused > 0) return proceed()
        refused += 1
        await world.store.tryLockRun('r', 'other', world.time.now + 1000, world.time.now)
        const answer = await proceed()
        await world.store.releaseRunLock('r', 'other')
        await engine.runOne('r')
        return answer
      }
      for (const member of ['claimRun', 'tryLockRun'] as const) {
        world.gate(engine).around(member, refuse)
      }
      await engine.start('w', null, 'r')
      assert.equal(await world.output('r'), 'done')
      assert.equal(refused, 1)
    }).tags(['@race-26'])

    test('more due runs than turn slots are all executed, each once', async ({ assert }) => {
      const engine = world.engine({ turnSlots: 2, runDispatcher: { dispatch: () => {} } })
      let [active, most] = [0, 0]
      engine.register('w', '1', async (ctx, n: number) =>
        ctx.localStep('work', async () => {
          active += 1
          most = Math.max(most, active)
          await new Promise(setImmediate)
          active -= 1
          return n
        })
      )
      for (let i = 0; i < 9; i++) await engine.start('w', i, `r${i}`)
      const passes = await Promise.all([engine.runPending(), engine.runPending()])
      assert.lengthOf(passes.flat(), 9)
      assert.equal(most, 2)
      for (let i = 0; i < 9; i++) assert.equal(await world.output(`r${i}`), i)
    })

    test('pending runs are taken oldest first', async ({ assert }) => {
      const engine = world.engine({ turnSlots: 1, runDispatcher: { dispatch: () => {} } })
      const order: unknown[] = []
      engine.register('w', '1', async (_, n) => void order.push(n))
      for (const id of ['b', 'c', 'a']) {
        await engine.start('w', id, id)
        world.time.jump(10)
      }
      const results = await engine.runPending()
      assert.deepEqual(order, ['b', 'c', 'a'])
      assert.deepEqual(
        results.map((result) => result.runId),
        ['b', 'c', 'a']
      )
    })
  })
}
