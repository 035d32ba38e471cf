/*
 * Waiting for a run that settles while the wait begins: nothing is missed, although no time passes that a
 * poll could use.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Waiting for runs | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    for (const [what, terminal] of [
      ['an end', true],
      ['any settle', false],
    ] as const) {
      test(`${what} that comes between the read of the run and its answer is not missed`, async ({
        assert,
      }) => {
        const engine = world.engine()
        const gate = deferred<string>()
        engine.register('w', '1', async (ctx) => ctx.localStep('work', () => gate.promise))
        await engine.start('w', null, 'r')
        await world.reached('r', 'running')
        let overtaken = false
        world.gate(engine).once('getRun', async (proceed) => {
          const read = await proceed()
          gate.resolve('done')
          await world.ended('r')
          await world.quiet()
          overtaken = true
          return read
        })
        const result = await engine.waitForRun('r', { terminal })
        assert.deepEqual(result, { runId: 'r', status: 'completed', output: 'done' })
        assert.isTrue(overtaken)
        assert.equal(world.time.pending, 0)
      }).tags(['@race-34'])
    }

    test('a suspension that comes between the read of the run and its answer is not missed', async ({
      assert,
    }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      engine.register('w', '1', async (ctx) => ctx.waitForSignal('go'))
      await engine.start('w', null, 'r')
      world.gate(engine).once('getRun', async (proceed) => {
        const read = await proceed()
        await engine.runOne('r')
        return read
      })
      const result = await engine.waitForRun('r')
      assert.deepEqual(result, { runId: 'r', status: 'suspended' })
    }).tags(['@race-34'])

    test('a run that is suspended until a worker decides its turn has not settled', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.waitForSignal('go'))
      await engine.start('w', null, 'r')
      await world.parked('r')
      await world.store.updateRunIf('r', ['suspended'], { awaitingDecisionTaskId: 't' })
      const settled: unknown[] = []
      const wait = engine.waitForRun('r').then((result) => settled.push(result))
      await world.quiet()
      await world.time.advance(1000)
      assert.deepEqual(settled, [])
      await world.store.updateRunIf('r', ['suspended'], { awaitingDecisionTaskId: undefined })
      await world.time.advance(250)
      await wait
      assert.deepEqual(settled, [{ runId: 'r', status: 'suspended' }])
    }).tags(['@race-34'])

    test('an end that another process brings about is seen by the next look', async ({
      assert,
    }) => {
      const [here, there] = [world.engine(), world.engine({ maxRecoveryAttempts: 0 })]
      for (const engine of [here, there]) {
        engine.register('w', '1', async (ctx) => ctx.waitForSignal(`go ${ctx.runId}`))
      }
      for (const runId of ['cancelled', 'dead']) {
        await here.start('w', null, runId)
        await world.parked(runId)
      }
      const settled: unknown[] = []
      const waits = ['cancelled', 'dead'].map(async (runId) => {
        const { status } = await here.waitForRun(runId, { terminal: true })
        settled.push(status)
      })
      await world.quiet()
      await there.cancel('cancelled')
      await world.store.updateRun('dead', { status: 'running', lockedBy: 'gone', lockedUntil: 1 })
      await there.recoverIncomplete()
      await world.quiet()
      assert.deepEqual(settled, [], 'nothing told this process')
      await world.time.advance(250)
      await Promise.all(waits)
      assert.sameMembers(settled, ['cancelled', 'dead'])
    }).tags(['@race-35'])
  })
}
