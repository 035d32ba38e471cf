/*
 * What operators do meets what runs do: retries meet retries, deletions meet claims and requeues, a bulk
 * cancel meets runs that end, a step that is sent again meets its result.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'

const ship = defineStep('ship', async (n: number) => n)
const numbered = (count: number) => Array.from({ length: count }, (_, i) => `r${i}`)

for (const kind of await storesUnderTest()) {
  test.group(`Retries meet | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('two requeues at once re-open a run once, and its body runs once', async ({ assert }) => {
      const [one, two] = [world.engine(), world.engine()]
      let fails = true
      let attempts = 0
      const body = async (ctx: WorkflowCtx) =>
        ctx.localStep('a', () => {
          attempts += 1
          if (fails) throw new Error('not yet')
          return attempts
        })
      for (const engine of [one, two]) engine.register('w', '1', body)
      await one.start('w', null, 'r')
      await world.reached('r', 'failed')
      await world.quiet()
      fails = false
      const answers = await Promise.all([one.requeue('r'), two.requeue('r'), one.requeue('r')])
      assert.isTrue(answers.some((answer) => answer?.status === 'pending'))
      assert.equal(await world.output('r'), 2)
      await world.quiet()
      assert.equal(attempts, 2)
      assert.equal(await world.status('r'), 'completed')
    })

    test('two retries into one id start one run', async ({ assert }) => {
      const [one, two] = [world.engine(), world.engine()]
      const inputs: number[] = []
      for (const engine of [one, two]) {
        engine.register('w', '1', async (_, n: number) => {
          inputs.push(n)
          return n
        })
      }
      await one.start('w', 0, 'r')
      await world.ended('r')
      const retries = [one.retryWithInput('r', 1, 'again'), two.retryWithInput('r', 2, 'again')]
      assert.deepEqual(await Promise.all(retries), [{ runId: 'again' }, { runId: 'again' }])
      const { input, output } = await world.ended('again')
      await world.quiet()
      assert.equal(output, input)
      assert.deepEqual(inputs, [0, input])
    })
  })

  test.group(`Deletions meet | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a claim that comes first loses its run: what the turn does is not kept', async ({
      assert,
    }) => {
      const [engine, operator] = [world.engine(), world.engine()]
      const begun = deferred<void>()
      const gate = deferred<void>()
      engine.register('child', '1', async () => 1)
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', async () => {
          begun.resolve()
          await gate.promise
        })
        return ctx.child('child', null)
      })
      await engine.start('w', null, 'r')
      await begun.promise
      assert.equal(await operator.deleteRun('r'), 1)
      gate.resolve()
      await world.quiet()
      assert.deepEqual(await world.store.listRuns({}), [])
      assert.deepEqual(await world.rows('r'), [])
      assert.deepEqual(await world.store.listSignalWaiters(''), [])
      assert.isNull(await engine.getRun('r'))
    })

    test('a claim that comes during a deletion finds the run held, and then gone', async ({
      assert,
    }) => {
      const [engine, operator] = [world.engine(), world.engine()]
      let bodies = 0
      engine.register('child', '1', async (ctx) => ctx.waitForSignal('never'))
      engine.register('w', '1', async (ctx) => {
        bodies += 1
        await ctx.waitForSignal('go')
        return ctx.child('child', null)
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      world.gate(operator).once('deleteRuns', async (proceed) => {
        await engine.signal('go')
        return proceed()
      })
      assert.equal(await operator.deleteRun('r'), 1)
      await world.quiet()
      world.time.jump(600_000)
      await engine.resumeDueTimers()
      await engine.recoverIncomplete()
      await world.quiet()
      assert.equal(bodies, 1)
      assert.deepEqual(await world.store.listRuns({}), [])
    })

    test('a run that is started again under the id of a deleted one is another run', async ({
      assert,
    }) => {
      const [engine, other] = [world.engine(), world.engine()]
      for (const each of [engine, other]) {
        each.register('w', '1', async (ctx, n: number) => {
          const first = await ctx.localStep('a', () => n)
          await ctx.waitForSignal('go')
          return first
        })
      }
      await engine.start('w', 1, 'r')
      const kept = await world.parked('r')
      await other.deleteRun('r')
      world.time.jump(1000)
      await other.start('w', 2, 'r')
      const again = await world.parked('r')
      assert.equal(again.turns, kept.turns)
      await engine.signal('go')
      assert.equal(await world.output('r'), 2)
    })

    test('a run that is brought back while a purge passes stays', async ({ assert }) => {
      const [engine, operator] = [world.engine(), world.engine()]
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => {
          throw new Error('no')
        })
      })
      engine.register('waits', '1', async (ctx) => ctx.waitForSignal('go'))
      for (const id of ['a', 'b']) await engine.start('w', null, id)
      for (const id of ['a', 'b']) await world.reached(id, 'failed')
      await world.quiet()
      world.gate(operator).once(kind.complete ? 'deleteRunsIf' : 'getRun', async (proceed) => {
        await world.store.updateRunIf('a', ['failed'], { status: 'suspended', wakeAt: undefined })
        return proceed()
      })
      assert.equal(await operator.purgeRuns({ workflow: 'w' }), 1)
      assert.equal(await world.status('a'), 'suspended')
      assert.lengthOf(await world.rows('a'), 1)
      assert.isNull(await world.store.getRun('b'))
    })

    test('a cancel that its process left half done is finished before its run is deleted', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('leaf', '1', async (ctx) => ctx.waitForSignal('never'))
      engine.register('top', '1', async (ctx) => ctx.child('leaf', null))
      for (const id of ['a', 'b']) await engine.start('top', null, id)
      for (const id of ['a', 'b']) await world.parked(`${id}.child.0`)
      for (const id of ['a', 'b']) {
        await world.parked(id)
        const half = { status: 'cancelled' as const, cancelRequestedAt: world.time.now }
        await world.store.updateRunIf(id, ['suspended'], half)
      }
      const operator = world.engine()
      assert.equal(await operator.purgeRuns({ workflow: 'top', idPrefix: 'a' }), 1)
      assert.equal(await world.status('a.child.0'), 'cancelled')
      assert.equal(await operator.purgeRuns({ workflow: 'top' }, { children: true }), 2)
    })

    test('children of a cancelled run hear of it although its row is deleted at once', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('leaf', '1', async (ctx) => ctx.waitForSignal('never'))
      engine.register('middle', '1', async (ctx) => ctx.child('leaf', null))
      engine.register('top', '1', async (ctx) => ctx.child('middle', null))
      await engine.start('top', null, 't')
      await world.parked('t.child.0.child.0')
      await world.parked('t')
      assert.equal(await engine.purgeRuns({ workflow: 'middle' }, { cancelLive: true }), 1)
      await world.quiet()
      assert.equal(await world.status('t.child.0.child.0'), 'cancelled')
      assert.deepInclude(await world.errorOf('t'), {
        message: 'child "t.child.0" failed: cancelled',
      })
    })
  })

  test.group(`Bulk cancels meet | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('over more than one page while runs end and come, every run that lived is cancelled', async ({
      assert,
    }) => {
      const [engine, operator] = [world.engine(), world.engine()]
      engine.register('w', '1', async (ctx) => ctx.waitForSignal(`go ${ctx.runId}`))
      const ids = numbered(250)
      const [early, late] = [ids.slice(0, 125), ids.slice(125)]
      for (const id of early) await engine.start('w', null, id)
      world.time.jump(5)
      for (const id of late) await engine.start('w', null, id)
      await until(
        async () => (await world.store.countRuns({ status: 'suspended' })) === 250,
        'all of them to park'
      )
      await world.quiet()
      let pages = 0
      world.gate(operator).around('listRuns', async (proceed) => {
        const page = await proceed()
        if (pages++ > 0) return page
        // Of the page that was read, of one that is to come, and one more that nobody has seen.
        world.time.jump(5)
        for (const id of ['r249', 'r3']) await engine.signal(`go ${id}`, 'ended')
        await engine.start('w', null, 'new')
        return page
      })
      const results = await operator.cancelWhere({ workflow: 'w' })
      const byId = new Map(results.map((result) => [result.runId, result.status]))
      assert.equal(byId.size, results.length)
      assert.equal(byId.get('r249'), 'completed')
      assert.isFalse(byId.has('r3'))
      assert.equal([...byId.values()].filter((status) => status === 'cancelled').length, 248)
      await world.quiet()
      assert.equal(await world.store.countRuns({ status: 'cancelled' }), 248)
      assert.equal(await world.store.countRuns({ status: 'completed' }), 2)
      assert.equal(await world.status('new'), 'suspended')
    }).timeout(60_000)
  })

  test.group(`Steps sent again meet | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a result that lands before the row is written stands, and nothing is sent', async ({
      assert,
    }) => {
      const [engine, operator] = [
        world.engine({ transport: 'held' }),
        world.engine({ transport: 'held' }),
      ]
      engine.register('w', '1', async (ctx) => ctx.step(ship, 1))
      await engine.start('w', null, 'r')
      const task = await world.held.task('ship')
      await world.parked('r')
      const member = kind.complete ? 'saveCheckpointsIfPending' : 'getCheckpoint'
      world.gate(operator).once(member, async (proceed) => {
        await world.held.complete(task, 'first', world.port(engine))
        return proceed()
      })
      assert.deepInclude(await operator.redispatchPending('r'), { redispatched: 0 })
      assert.equal(await world.output('r'), 'first')
      assert.equal(world.held.times('r:0'), 1)
      const [row] = await world.rows('r')
      assert.deepInclude(row, { status: 'completed', attempts: 1, output: 'first' })
    })

    test('a result that lands after it is the answer, and the second one is dropped', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => {
        const got = await ctx.step(ship, 1)
        await ctx.waitForSignal('go')
        return got
      })
      await engine.start('w', null, 'r')
      const first = await world.held.task('ship')
      await world.parked('r')
      await Promise.all([engine.redispatchPending('r'), engine.redispatchPending('r')])
      await world.held.complete(first, 'first')
      await world.held.complete(await world.held.task('ship', 2), 'second')
      await world.parked('r')
      await engine.signal('go')
      assert.equal(await world.output('r'), 'first')
    })
  })
}
