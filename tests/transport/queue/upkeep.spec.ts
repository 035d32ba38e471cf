/*
 * What a queue transport looks after by itself: how many tasks run at once, and messages to pods that are
 * gone.
 */
import { test } from '@japa/runner'
import { newJob } from '../../../src/transport/queue/adapter.ts'
import { LocalKeys } from '../../../src/transport/queue/local_keys.ts'
import { JOB } from '../../../src/wire/names.ts'
import { FakeTime } from '../../helpers/fake_time.ts'
import { until } from '../../helpers/until.ts'
import { ADAPTIVE, growsAndShrinks } from '../adaptive.ts'
import { ADAPTERS, QueueBench, dropDatabases } from './bench.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

for (const behind of ADAPTERS) {
  test.group(`Adaptive concurrency of the queue transport on ${behind}`, (group) => {
    group.each.timeout(60_000)
    group.teardown(dropDatabases)

    test('the limit grows while steps go well, shrinks when they fail, and bounds what runs', async ({
      assert,
      cleanup,
    }) => {
      const bench = await QueueBench.open(cleanup, behind)
      const engine = await bench.session()
      await growsAndShrinks(assert, engine, await bench.transport(ADAPTIVE))
    })
  })

  test.group(`The janitor of the queue transport on ${behind}`, (group) => {
    group.each.timeout(60_000)
    group.teardown(dropDatabases)

    test('messages to a pod that is gone are deleted in time; those to others stay', async ({
      assert,
      cleanup,
    }) => {
      const bench = await QueueBench.open(cleanup, behind)
      const { prefix } = bench
      const time = new FakeTime()
      const plane = await bench.transport({
        workerKeys: new LocalKeys(time.clock),
        clock: time.clock,
        timers: time,
        pollIntervalMs: 200,
        tenantSubscribersCacheMs: 0,
        inboxTtlMs: 2 * MINUTE,
        inboxSweepIntervalMs: 10 * SECOND,
        closeTimeoutMs: 0,
      })
      const adapter = await bench.adapter()
      const announce = (instanceId: string) =>
        adapter.pushOn(
          `${prefix}:inbox-registrations`,
          newJob(JOB.inbox, { instanceId, tenants: ['acme'], at: 0 })
        )
      const waiting = (instanceId: string) =>
        adapter.sizeOf(`${prefix}:tenant-events:${instanceId}`)
      const publish = () =>
        plane.publishTenantEvent({
          tenant: 'acme',
          event: { type: 'run.completed', runId: 'r', workflow: 'w', at: new Date(0) } as never,
        })
      const pass = (what: string, check: () => Promise<boolean>) =>
        until(async () => {
          await time.advance(200)
          return check()
        }, what)

      await publish()
      for (const pod of ['gone', 'here']) await announce(pod)
      await pass('both pods', async () => {
        await publish()
        return (await waiting('gone')) > 0 && (await waiting('here')) > 0
      })
      const kept = await waiting('here')
      const seen = time.now
      // One goes on announcing itself, the other never again.
      let said = time.now
      await pass('the deletion', async () => {
        if (time.now - said > 10 * SECOND) {
          await announce('here')
          said = time.now
        }
        await time.advance(2 * SECOND)
        return (await waiting('gone')) === 0
      })
      assert.isAbove(time.now - seen, 2 * MINUTE)
      assert.equal(await waiting('here'), kept)
      const before = await waiting('gone')
      await publish()
      assert.deepEqual([await waiting('gone'), await waiting('here')], [before, kept + 1])
    })
  })
}
