/*
 * What is known of the fleet: who is alive under which token, how much waits, what workers say of themselves.
 */
import assert from 'node:assert/strict'
import { deferred } from '../../../foundation/deferred.ts'
import { encode } from '../../../wire/codec.ts'
import type { GroupHealth, WorkerDescriptor } from '../../../wire/messages.ts'
import { routingToken } from '../../../wire/names.ts'
import { eventually, repeated, type TransportSession } from '../transport_session.ts'
import { fresh, shared, type TransportCase } from './case.ts'

const HEALTH = { members: ['groupHealth', 'listWorkerGroups', 'readAllWorkerHeartbeats'] } as const
const DESCRIPTORS = { members: ['listWorkerDescriptors', 'readAllWorkerDescriptors'] } as const

/** The health of a group once it is as it should be. */
async function healthWhen(
  { transport }: TransportSession,
  group: string,
  check: (health: GroupHealth) => boolean
): Promise<GroupHealth> {
  let health: GroupHealth | undefined
  await repeated(
    `the health of ${group}`,
    async () => (health = await transport.groupHealth!(group)),
    () => health !== undefined && check(health)
  )
  return health!
}

const workersOf = ({ liveWorkers }: GroupHealth) => liveWorkers.map((worker) => worker.instanceId)

const descriptorOf = (instanceId: string): WorkerDescriptor => ({
  instanceId,
  runtime: 'python',
  sdk: { name: 'durable', version: '1' },
  workflows: [],
  steps: ['charge'],
  startedAt: 5,
})

export const FLEET_CASES: TransportCase[] = [
  shared(
    'the health of a group counts what waits and lists who is alive, with its load',
    async (bench) => {
      const engine = await bench.session()
      const worker = await bench.session({ instanceId: 'worker 1' })
      const gate = deferred()
      worker.serve('charge', () => gate.promise, 'acme')
      const group = routingToken('charge', 'acme')
      const tasks = [0, 1, 2].map((n) => engine.task('charge', n, { group }))
      for (const task of tasks) await engine.transport.dispatch(task)
      await eventually('the pickup', () => engine.beats.length > 0)
      const health = await healthWhen(engine, group, (each) => each.liveWorkers.length > 0)
      assert.equal(health.group, group)
      // The one that runs may count.
      assert.ok([2, 3].includes(health.depth), `depth is ${health.depth}`)
      assert.deepEqual(workersOf(health), ['worker 1'])
      const [{ status, lastBeatAt }] = health.liveWorkers
      assert.equal(typeof status?.inFlight, 'number')
      assert.equal(status?.concurrency.mode, 'fixed')
      assert.ok(lastBeatAt > 1e12, `lastBeatAt is ${lastBeatAt}`)
      const bare = await engine.transport.groupHealth!('charge')
      assert.deepEqual({ ...bare }, { group: 'charge', depth: 0, liveWorkers: [] })
      assert.deepEqual(await engine.transport.listWorkerGroups!(), [group])
      const beats = await engine.transport.readAllWorkerHeartbeats!()
      assert.deepEqual(
        beats.map((beat) => [beat.group, beat.instanceId]),
        [[group, 'worker 1']]
      )
      gate.resolve(undefined)
      for (const task of tasks) await engine.resultOf(task)
      await healthWhen(engine, group, ({ depth }) => depth === 0)
    },
    HEALTH
  ),
  shared(
    'a worker that stopped is no member of its group any more',
    async (bench) => {
      const engine = await bench.session()
      const workers = [
        await bench.session({ instanceId: 'stays' }),
        await bench.session({ instanceId: 'goes' }),
      ]
      for (const worker of workers) worker.serve('charge', () => null)
      await healthWhen(engine, 'charge', (health) => health.liveWorkers.length === 2)
      await workers[1].transport.close?.()
      const health = await healthWhen(engine, 'charge', (each) => each.liveWorkers.length < 2)
      assert.deepEqual(workersOf(health), ['stays'])
    },
    HEALTH
  ),
  shared(
    'a worker whose consumers are deferred is not announced until they start',
    async (bench) => {
      const engine = await bench.session()
      const worker = await bench.session({ deferred: true })
      worker.serve('parked', () => null)
      engine.serve('open', () => null)
      await healthWhen(engine, 'open', (health) => health.liveWorkers.length > 0)
      assert.deepEqual(await engine.transport.listWorkerGroups!(), ['open'])
      worker.transport.startConsumers?.()
      await healthWhen(engine, 'parked', (health) => health.liveWorkers.length > 0)
    },
    HEALTH
  ),
  shared(
    'a namespace sees its own workers alone',
    async (bench) => {
      const x = await bench.session({ namespace: 'x', instanceId: 'of x' })
      const y = await bench.session({ namespace: 'y', instanceId: 'of y' })
      for (const session of [x, y]) session.serve('charge', () => null)
      for (const [session, id] of [
        [x, 'of x'],
        [y, 'of y'],
      ] as const) {
        const health = await healthWhen(session, 'charge', (each) => each.liveWorkers.length > 0)
        assert.deepEqual(workersOf(health), [id])
        const beats = await session.transport.readAllWorkerHeartbeats!()
        assert.deepEqual(
          beats.map((beat) => beat.instanceId),
          [id]
        )
      }
    },
    HEALTH
  ),
  fresh(
    'what workers say of themselves is read, and what cannot be read is left out',
    async (bench) => {
      const { transport } = await bench.session()
      assert.deepEqual(await transport.listWorkerDescriptors!('charge'), [])
      const advertise = bench.advertise!
      const first = descriptorOf('py-1')
      const second = descriptorOf('py-2')
      await advertise('charge', 'py-1', encode('descriptor', first))
      await advertise('ship', 'py-1', encode('descriptor', first))
      await advertise('charge', 'py-2', encode('descriptor', second))
      await advertise('charge', 'py-8', 'garbage')
      await advertise('charge', 'py-9', '{"nothing":true}')
      await advertise('charge[x]*', 'py-2', encode('descriptor', second))
      const listed = async (token: string) => {
        const descriptors = await transport.listWorkerDescriptors!(token)
        return descriptors.map((each) => each.instanceId).sort()
      }
      assert.deepEqual(await listed('charge'), ['py-1', 'py-2'])
      assert.deepEqual(await listed('ship'), ['py-1'])
      assert.deepEqual(await listed('charge[x]*'), ['py-2'])
      assert.deepEqual(await listed('nobody'), [])
      const all = await transport.readAllWorkerDescriptors!()
      assert.deepEqual(
        all.map((each) => ({ ...each })).sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1)),
        [first, second]
      )
    },
    { ...DESCRIPTORS, abilities: ['descriptors'] }
  ),
]
