/*
 * What an engine knows of the workers of its transports: their groups, how much waits, who is alive.
 */
import { getActiveTestOrFail, test } from '@japa/runner'
import { StoreRunGateway, WorkflowEngine, type GroupHealth, type Transport } from '../../index.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import { BROKERS, openBroker } from '../transport/brokers.ts'
import { until } from '../helpers/until.ts'

function engineOver(...of: Transport[]): WorkflowEngine {
  const transports = of.map((transport, place) => ({ id: `t${place}`, transport }))
  const engine = new WorkflowEngine({ store: new InMemoryStateStore(), transports })
  getActiveTestOrFail().cleanup(() => engine.drain())
  engine.register('order', '1', async (ctx) => {
    await ctx.step('charge', null)
    await Promise.all([ctx.step('ship', 1), ctx.step('ship', 2), ctx.step('ship', 3)])
  })
  return engine
}

/** Group, what waits, who is alive. */
const inShort = (healths: GroupHealth[]) =>
  healths.map(({ group, depth, liveWorkers }) => [
    group,
    depth,
    liveWorkers.map(({ instanceId }) => instanceId),
  ])

test.group('The fleet of an engine', (group) => {
  group.each.timeout(60_000)

  test('over {$self}: a group that nobody serves shows its backlog, one that is served its workers')
    .with(BROKERS)
    .run(async ({ assert }, broker) => {
      const { open } = await openBroker(broker)
      const engine = engineOver(await open('engine'))
      const worker = await open('worker')
      worker.handle!('charge', () => null)
      await engine.start('order', null, 'o:1')
      const health = () => engine.workerHealth(['ship', 'charge', 'ship'])
      await until(async () => {
        const [ship, charge] = await health()
        return ship.depth === 3 && charge.liveWorkers.length > 0
      }, 'the backlog and the worker')
      assert.deepEqual(inShort(await health()), [
        ['ship', 3, []],
        ['charge', 0, ['worker']],
      ])
      assert.deepEqual(inShort(await new StoreRunGateway(engine).workerHealth()), [
        ['charge', 0, ['worker']],
      ])
      assert.deepEqual(inShort(await engine.workerHealth(['nobody'])), [
        ['nobody', 0, []],
        ['charge', 0, ['worker']],
      ])
    })

  test('groups are those that are named, each once', async ({ assert }) => {
    const engine = engineOver(new InMemoryTransport())
    assert.deepEqual(engine.knownGroups(), [])
    assert.deepEqual(engine.knownGroups(['b', 'a', 'b']), ['b', 'a'])
    for (const wrong of ['a', [''], [7]]) {
      assert.throws(() => engine.knownGroups(wrong as string[]), /groups must be a list of texts/)
      await assert.rejects(() => engine.workerHealth(wrong as string[]), /groups must be a list/)
    }
  })

  test('where no transport can tell, nothing is told', async ({ assert }) => {
    assert.deepEqual(await engineOver(new InMemoryTransport()).workerHealth(['charge']), [])
    const bare = new WorkflowEngine({ store: new InMemoryStateStore() })
    assert.deepEqual(await bare.workerHealth(['charge']), [])
  })

  test('a member of a pool that is down is left out; when all are, that is said', async ({
    assert,
  }) => {
    const down: Transport = Object.assign(new InMemoryTransport(), {
      groupHealth: () => Promise.reject(new Error('down')),
      readAllWorkerHeartbeats: () => Promise.reject(new Error('down')),
    })
    const beat = { group: 'charge', instanceId: 'w', lastBeatAt: 1 }
    const up: Transport = Object.assign(new InMemoryTransport(), {
      groupHealth: async (name: string) => ({ group: name, depth: 2, liveWorkers: [beat] }),
      readAllWorkerHeartbeats: async () => [beat],
    })
    assert.deepEqual(inShort(await engineOver(down, up).workerHealth()), [['charge', 2, ['w']]])
    await assert.rejects(() => engineOver(down).workerHealth(), 'down')
  })
})
