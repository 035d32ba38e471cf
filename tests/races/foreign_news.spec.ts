/*
 * News that arrives at an engine which cannot run the run it is about: nothing is lost, somebody else
 * takes it.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const remote = defineStep('remote', (n: number) => n)

const LEASE_MS = 30_000

for (const kind of await storesUnderTest()) {
  test.group(`News at the wrong engine | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a result at an engine without the workflow reaches one that has it', async ({
      assert,
    }) => {
      const knowing = world.engine({ transport: 'held' })
      const ignorant = world.engine({ transport: 'held' })
      knowing.register('w', '1', async (ctx) => ctx.step('remote', 1))
      await knowing.start('w', null, 'r')
      const task = await world.held.task('remote')
      await world.parked('r')
      await world.held.complete(task, 'answer', world.port(ignorant))
      await world.quiet()
      const run = await world.run('r')
      assert.equal(run.status, 'suspended')
      assert.notProperty(run, 'lockedBy')
      assert.isAtMost(run.wakeAt!, world.time.now + LEASE_MS)
      world.time.jump(LEASE_MS)
      await knowing.resumeDueTimers()
      assert.equal(await world.output('r'), 'answer')
    }).tags(['@race-9', '@control-9'])

    test('a signal at an engine without the workflow reaches one that has it', async ({
      assert,
    }) => {
      const [knowing, ignorant] = [world.engine(), world.engine()]
      knowing.register('w', '1', async (ctx) => ctx.waitForSignal('go'))
      await knowing.start('w', null, 'r')
      await world.parked('r')
      const answer = await ignorant.signal('go', 'payload')
      assert.deepInclude(answer, { runId: 'r', status: 'suspended' })
      world.time.jump(LEASE_MS)
      await knowing.resumeDueTimers()
      assert.equal(await world.output('r'), 'payload')
    }).tags(['@race-9'])

    test('a pending run that nobody here can run is given back as it was', async ({ assert }) => {
      const starting = world.engine({ runDispatcher: { dispatch: () => {} } })
      const [ignorant, knowing] = [world.engine(), world.engine()]
      const events = world.eventsOf(ignorant)
      starting.register('w', '1', async () => 'done')
      knowing.register('w', '1', async () => 'done')
      ignorant.register('other', '1', async () => 'other')
      await starting.start('w', null, 'r')
      assert.deepEqual(await ignorant.runPending(), [])
      const run = await world.run('r')
      assert.equal(run.status, 'pending')
      assert.notProperty(run, 'lockedBy')
      assert.notProperty(run, 'turns')
      assert.deepEqual(events, [])
      const [heard] = [world.eventsOf(knowing)]
      await knowing.runPending()
      assert.equal(await world.output('r'), 'done')
      assert.deepEqual(
        heard.map((event) => event.type),
        ['run.started', 'run.completed']
      )
    })

    test('a run that cannot be run here does not keep others from being run', async ({
      assert,
    }) => {
      const starting = world.engine({ runDispatcher: { dispatch: () => {} } })
      const engine = world.engine({ turnSlots: 1 })
      starting.register('unknown', '1', async () => 'never')
      starting.register('known', '1', async () => 'done')
      engine.register('known', '1', async () => 'done')
      for (let i = 0; i < 5; i++) {
        await starting.start('unknown', null, `u${i}`)
        world.time.jump(1)
      }
      await starting.start('known', null, 'k')
      await engine.runPending()
      await engine.runPending()
      assert.equal(await world.output('k'), 'done')
    })

    test('a run of a version that is not registered here waits for an engine that has it', async ({
      assert,
    }) => {
      const [old, young] = [world.engine(), world.engine()]
      old.register('w', '1', async (ctx) => `one: ${await ctx.waitForSignal('go')}`)
      young.register('w', '2', async () => 'two')
      await old.start('w', null, 'r')
      await world.parked('r')
      await assert.rejects(() => young.resume('r'), /w@1 is not registered.*keep it deployed/)
      assert.deepInclude(await young.signal('go', 'x'), { status: 'suspended' })
      assert.isNull(await young.runOne('r'))
      world.time.jump(LEASE_MS)
      await old.resumeDueTimers()
      assert.equal(await world.output('r'), 'one: x')
    })

    test('an engine with a namespace never runs a foreign run, whatever tells it to', async ({
      assert,
    }) => {
      const blue = world.engine({ namespace: 'blue', transport: 'held' })
      const red = world.engine({ namespace: 'red', transport: 'held' })
      const ran: string[] = []
      for (const engine of [blue, red]) {
        engine.register('w', '1', async (ctx) => {
          ran.push(engine.namespace!)
          const signal = await ctx.waitForSignal('go')
          return [signal, await ctx.step('remote', 1)]
        })
      }
      await red.start('w', null, 'r')
      await world.parked('r')
      assert.isNull(await blue.runOne('r'))
      await assert.rejects(() => blue.resume('r'), /belongs to namespace "red"/)
      assert.notProperty(await world.run('r'), 'lockedBy')
      assert.deepInclude(await blue.signal('go', 1), { status: 'suspended' })
      assert.deepEqual(await blue.resumeDueTimers(), [])
      assert.lengthOf(await red.resumeDueTimers(), 1)

      const task = await world.held.task('remote')
      assert.equal(task.group, 'remote@red')
      await world.parked('r')
      await world.held.complete(task, 2, world.port(blue))
      await world.quiet()
      assert.equal(await world.status('r'), 'suspended')
      await red.resumeDueTimers()
      assert.deepEqual(await world.output('r'), [1, 2])
      assert.deepEqual([...new Set(ran)], ['red'])
    })

    test('an engine without a namespace runs the runs of all, on their own routes', async ({
      assert,
    }) => {
      const red = world.engine({ namespace: 'red', runDispatcher: { dispatch: () => {} } })
      const operator = world.engine({ transport: 'held' })
      for (const engine of [red, operator]) {
        engine.register('w', '1', async (ctx) => ctx.step('remote', 1))
      }
      await red.start('w', null, 'r')
      await operator.start('w', null, 'own')
      await operator.runPending()
      const [own, theirs] = [await world.held.task('remote'), await world.held.task('remote', 2)]
      assert.sameMembers([own.group, theirs.group], ['remote', 'remote@red'])
      assert.deepInclude(await world.run('own'), { namespace: 'default' })
      await world.held.complete(own, 1)
      await world.held.complete(theirs, 1)
      assert.equal(await world.output('r'), 1)
    }).tags(['@race-56', '@control-50'])

    test('children, fans, retries and chains follow the namespace of the run, whoever executes it', async ({
      assert,
    }) => {
      const operator = world.engine({ transport: 'held' })
      operator.register('leaf', '1', async (_, n: number) => n)
      operator.register('w', '1', async (ctx, n: number) => {
        const first = await ctx.step('remote', n, { retries: 2 })
        await ctx.all(remote, [n])
        await ctx.startChild('leaf', 1, `${ctx.runId}-spawned`)
        await ctx.child('leaf', 2, `${ctx.runId}-child`)
        await ctx.all('leaf', [3])
        if (n === 0) await ctx.continueAsNew(1)
        if (n === 1) throw new Error('once')
        return first
      })
      operator.register('fails', '1', async (ctx) => {
        await ctx.step('book', 1, { compensate: 'unbook' })
        throw new Error('no')
      })
      const answers = async (from: number, failFirst: boolean) => {
        const nth = (n: number) => world.held.task('remote', from + n)
        if (failFirst) await world.held.fail(await nth(1), 'again')
        await world.held.complete(await nth(failFirst ? 2 : 1), 1)
        await world.held.complete(await nth(failFirst ? 3 : 2), 1)
      }
      await operator.start('w', 0, 'r', { namespace: 'acme' })
      await answers(0, true)
      await world.ended('r')
      await answers(3, false)
      await world.reached('r~1', 'failed')
      const retry = await operator.retryWithInput('r~1', 2, 'again')
      await answers(5, false)
      await world.ended(retry!.runId)
      await operator.start('fails', null, 'f', { namespace: 'acme' })
      await world.held.complete(await world.held.task('book'), 1)
      await world.held.complete(await world.held.task('unbook'), 1)
      await world.ended('f')
      await world.quiet()
      const runs = await world.store.listRuns({})
      assert.lengthOf(runs, 13)
      assert.deepEqual([...new Set(runs.map(({ namespace }) => namespace))], ['acme'])
      assert.lengthOf(world.held.sent, 9)
      for (const task of world.held.sent) assert.equal(task.group, `${task.name}@acme`)
    }).tags(['@race-56', '@control-50'])

    test('recovery and polls of one namespace leave the other alone', async ({ assert }) => {
      const blue = world.engine({ namespace: 'blue' })
      const red = world.engine({ namespace: 'red' })
      for (const engine of [blue, red]) engine.register('w', '1', async () => new Promise(() => {}))
      await red.start('w', null, 'r')
      await world.reached('r', 'running')
      await world.crash(red)
      world.time.jump(LEASE_MS + 1)
      assert.deepEqual(await blue.recoverIncomplete(), [])
      const again = world.engine({ namespace: 'red', runDispatcher: { dispatch: () => {} } })
      assert.lengthOf(await again.recoverIncomplete(), 1)
      assert.deepEqual(await blue.runPending(), [])
      assert.equal(await world.status('r'), 'pending')
    })

    test('a start into another namespace is left to that namespace', async ({ assert }) => {
      const blue = world.engine({ namespace: 'blue' })
      const red = world.engine({ namespace: 'red' })
      for (const engine of [blue, red]) engine.register('w', '1', async () => engine.namespace)
      await blue.start('w', null, 'r', { namespace: 'red' })
      await world.quiet()
      assert.deepInclude(await world.run('r'), { status: 'pending', namespace: 'red' })
      await red.runPending()
      assert.equal(await world.output('r'), 'red')
    })
  })
}
