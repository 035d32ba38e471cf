/*
 * Leases that nobody would let go of: taking or release was lost with a connection, or its holder died.
 */
import { test } from '@japa/runner'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'
import { crashIn, LEASE_MS } from './crashed.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Lost releases | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('recovery takes no lease of a run that ended meanwhile', async ({ assert }) => {
      await crashIn(world, 'r')
      const [late, quick] = [0, 1].map(() => world.engine())
      for (const engine of [late, quick]) {
        engine.register('w', '1', async (ctx) => ctx.localStep('work', () => 'done'))
      }
      world.time.jump(LEASE_MS + 1)
      const taken: unknown[] = []
      world.gate(late).once('tryLockRun', async (proceed) => {
        // It saw the orphan; another process was faster.
        await quick.recoverIncomplete()
        assert.equal(await world.output('r'), 'done')
        const answer = await proceed()
        taken.push(answer)
        return answer
      })
      await late.recoverIncomplete()
      assert.deepEqual(taken, [false])
      assert.notProperty(await world.run('r'), 'lockedBy')
    })

    test('a cancel lets go of the lease: whoever held it may not live to do so', async ({
      assert,
    }) => {
      await crashIn(world, 'r')
      assert.property(await world.run('r'), 'lockedBy')
      await world.engine().cancel('r')
      const run = await world.run('r')
      assert.equal(run.status, 'cancelled')
      assert.notProperty(run, 'lockedBy')
      assert.notProperty(run, 'lockedUntil')
    })

    test('a lease that was taken although the answer was lost goes with the next pass', async ({
      assert,
    }) => {
      await crashIn(world, 'r')
      const [unlucky, next] = [0, 1].map(() => world.engine())
      for (const engine of [unlucky, next]) {
        engine.register('w', '1', async (ctx) => ctx.localStep('work', () => 'done'))
      }
      world.time.jump(LEASE_MS + 1)
      world.gate(unlucky).once('tryLockRun', async (proceed) => {
        await proceed()
        throw new Error('connection terminated')
      })
      await unlucky.recoverIncomplete()
      assert.property(await world.run('r'), 'lockedBy')
      // No need to wait for it to lapse.
      await unlucky.recoverIncomplete()
      await next.recoverIncomplete()
      assert.equal(await world.output('r'), 'done')
    })
  })
}
