/*
 * The pager: whom it tells of, how often, and what it reads.
 */
import { test } from '@japa/runner'
import type { StalledRunInfo } from '../../index.ts'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { storesUnderTest, T0, useWorld } from '../helpers/engines.ts'

const MINUTE = 60_000
const KINDS = ['in memory', 'in memory, required members only', 'Lucid on postgres']
const kinds = await storesUnderTest()

function listen(engine: WorkflowEngine): StalledRunInfo[] {
  const infos: StalledRunInfo[] = []
  engine.onStalled((info) => void infos.push(info))
  return infos
}

for (const kind of kinds.filter(({ name }) => KINDS.includes(name))) {
  test.group(`stalled runs | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a lost step is told of once, although the run is looked at every five minutes', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held', stalledAfter: '15m' })
      engine.register('order', '1', (ctx) => ctx.step('charge', null))
      engine.register('waits', '1', (ctx) => ctx.waitForSignal('approve'))
      engine.register('sleeps', '1', (ctx) => ctx.sleep('2h'))
      const infos = listen(engine)
      for (const name of ['order', 'waits', 'sleeps']) await engine.start(name, null, name)
      for (const name of ['order', 'waits', 'sleeps']) await world.parked(name)
      for (let minutes = 1; minutes <= 22; minutes++) {
        await world.time.advance(MINUTE)
        await engine.resumeDueTimers()
        await world.quiet()
        await engine.sweepStalled()
        if (minutes < 15) assert.isEmpty(infos)
      }
      const { updatedAt } = await world.run('order')
      assert.isAbove(updatedAt.getTime(), T0 + 15 * MINUTE)
      assert.deepEqual(
        infos.map(({ run, idleMs, pendingStep }) => [run.id, idleMs, pendingStep?.name]),
        [['order', 15 * MINUTE, 'charge']]
      )
    })

    test('times that are no whole milliseconds do', async ({ assert }) => {
      const engine = world.engine({
        leaseMs: 30_000.5,
        stalledAfter: 1000.5,
        retention: { completed: 500.5 },
        transport: 'held',
      })
      engine.register('quick', '1', async () => 1)
      engine.register('order', '1', (ctx) => ctx.step('charge', null))
      listen(engine)
      await engine.start('quick', null, 'quick')
      await engine.start('order', null, 'order')
      await world.ended('quick')
      await world.parked('order')
      await world.time.advance(2000)
      assert.equal(await engine.sweepRetention(), 1)
      const told = await engine.sweepStalled()
      assert.deepEqual(
        told.map(({ run }) => run.id),
        ['order']
      )
      assert.throws(
        () => world.engine({ leaseMs: Infinity }),
        'WorkflowEngine: leaseMs must be finite, got Infinity'
      )
    })

    test('a run that is still pending is told of too', async ({ assert }) => {
      const nobody = { dispatch: () => {} }
      const engine = world.engine({ runDispatcher: nobody })
      engine.register('order', '1', async () => 1)
      await engine.start('order', null, 'r')
      const infos = listen(engine)
      await world.time.advance(15 * MINUTE)
      const told = await engine.sweepStalled()
      assert.deepEqual(told, infos)
      assert.deepEqual(
        told.map(({ run }) => [run.id, run.status]),
        [['r', 'pending']]
      )
    }).tags(['@control-59'])
  })
}

test.group('the pager', (group) => {
  const world = useWorld(group, kinds[0])

  async function lost(id: string): Promise<WorkflowEngine> {
    const engine = world.engine({ transport: 'held', reconcileMs: 0 })
    engine.register('order', '1', (ctx) => ctx.step('charge', null))
    await engine.start('order', null, id)
    await world.parked(id)
    await world.time.advance(15 * MINUTE)
    return engine
  }

  test('reads nothing where nobody listens, while draining, and twice in a minute', async ({
    assert,
  }) => {
    const engine = await lost('r')
    const { calls } = world.gate(engine)
    calls.clear()
    assert.isEmpty(await engine.sweepStalled())
    assert.equal(calls.size, 0)
    listen(engine)
    assert.lengthOf(await engine.sweepStalled(), 1)
    calls.clear()
    assert.isEmpty(await engine.sweepStalled(world.time.now + MINUTE - 1))
    engine.beginDrain()
    assert.isEmpty(await engine.sweepStalled(world.time.now + MINUTE))
    assert.equal(calls.size, 0)
  })

  test('tells of a run again when it moved and stalled again', async ({ assert }) => {
    const engine = await lost('r')
    const infos = listen(engine)
    await engine.sweepStalled()
    await engine.redispatchPending('r')
    await world.time.advance(14 * MINUTE)
    await engine.sweepStalled()
    assert.lengthOf(infos, 1)
    await world.time.advance(MINUTE)
    await engine.sweepStalled()
    assert.deepEqual(
      infos.map(({ pendingStep }) => pendingStep?.attempts),
      [1, 2]
    )
  })

  test('a listener that throws disturbs neither the others nor the pass', async ({ assert }) => {
    const engine = await lost('r')
    engine.onStalled(() => {
      throw new Error('pager is down')
    })
    const infos = listen(engine)
    assert.lengthOf(await engine.sweepStalled(), 1)
    assert.lengthOf(infos, 1)
    assert.include(world.reports.map(String).join(), 'pager is down')
  })

  test('a run whose history cannot be read does not hide the others', async ({ assert }) => {
    await lost('bad')
    const engine = await lost('good')
    const infos = listen(engine)
    world.gate(engine).around('queryCheckpoints', async (proceed, [runId]) => {
      if (runId === 'bad') throw new Error('unreadable')
      return proceed()
    })
    await engine.sweepStalled()
    assert.deepEqual(
      infos.map(({ run }) => run.id),
      ['good']
    )
  })

  test('every run has its turn, however many there are', async ({ assert }) => {
    const engine = await lost('r')
    for (let index = 0; index < 700; index++) {
      const run = {
        ...(await world.run('r')),
        id: `waits ${index}`,
        createdAt: new Date(T0 - index),
      }
      await world.store.createRun(run)
      await world.store.putSignalWaiter({ token: `t${index}`, runId: run.id, seq: 0 })
    }
    const infos = listen(engine)
    await engine.sweepStalled()
    assert.isEmpty(infos)
    await engine.sweepStalled(world.time.now + MINUTE)
    assert.lengthOf(infos, 1)
  })
})
