/*
 * Flow-control queues of engines in several processes, over `admissions.redis`.
 */
import { test } from '@japa/runner'
import { RedisAdmissionBackend } from '../../src/flow/redis/main.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'
import { cleanUp, ioRedis, listeners, ownPrefix, redisUrl } from '../helpers/redis.ts'

const url = await redisUrl()

for (const kind of url === null ? [] : await storesUnderTest()) {
  test.group(`Step queues over Redis | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    group.each.setup(() => cleanUp)

    test('a slot that one engine frees wakes the run that waits in another, without a poll', async ({
      assert,
      cleanup,
    }) => {
      const prefix = ownPrefix(url!)
      const [a, b] = ['a', 'b'].map((instanceId) => {
        const admission = new RedisAdmissionBackend(ioRedis(url!), { prefix, instanceId })
        cleanup(() => admission.close())
        const engine = world.engine({ transport: 'held', instanceId, admission })
        engine.registerQueue({ name: 'q', concurrency: 1 })
        engine.register('w', '1', (ctx) => ctx.step('call', ctx.runId, { queue: 'q' }))
        return engine
      })
      await listeners(ioRedis(url!), `${prefix}:adm:freed`, 2)
      const out = () => world.held.sent.map(({ input }) => input)
      await a.start('w', null, 'first')
      await world.parked('first')
      await b.start('w', null, 'second')
      await world.parked('second')
      assert.deepEqual(out(), ['first'])
      await world.held.complete('first:0', 'ok', world.port(a))
      await until(() => out().length === 2, 'the step that waited')
      await world.held.complete('second:0', 'ok', world.port(b))
      assert.equal(await world.output('second'), 'ok')
      assert.deepEqual(out(), ['first', 'second'])
    })
  })
}
