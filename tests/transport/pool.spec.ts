import { test } from '@japa/runner'
import { TransportPool } from '../../src/transport/pool.ts'
import type { Transport } from '../../src/transport/ports.ts'
import type {
  GroupHealth,
  RemoteTask,
  WorkerDescriptor,
  WorkerHeartbeat,
  WorkflowTask,
} from '../../src/wire/messages.ts'

const TASK: RemoteTask = {
  runId: 'r',
  seq: 0,
  name: 'n',
  stepId: 'r:0',
  group: 'n',
  input: 1,
  attempt: 1,
}
const TURN = { taskId: 't', workflow: 'w', history: [] } as unknown as WorkflowTask

const calls: string[] = []

/** A transport that notes what is called on it. */
function fake(id: string, more: Partial<Transport> = {}): { id: string; transport: Transport } {
  const note = (what: string) => void calls.push(`${id}.${what}`)
  return {
    id,
    transport: {
      dispatch: async (task) => note(`dispatch as ${task.transport}`),
      onResult: () => note('onResult'),
      onHeartbeat: () => note('onHeartbeat'),
      ...more,
    },
  }
}

const broken = (id: string) =>
  fake(id, {
    dispatch: async () => {
      calls.push(`${id}.dispatch`)
      throw new Error(`${id} is down`)
    },
  })

const noted = () => calls.splice(0)

test.group('transport pool | dispatch', (group) => {
  group.each.setup(() => () => void noted())

  test('the primary takes a task, stamped with its id', async ({ assert }) => {
    const pool = new TransportPool([fake('a'), fake('b')])
    assert.equal(await pool.dispatch(TASK), 'a')
    assert.deepEqual(noted(), ['a.dispatch as a'])
    assert.notProperty(TASK, 'transport')
  })

  test('a pinned task goes there first, then to the others in order', async ({ assert }) => {
    const pool = new TransportPool([fake('a'), broken('b'), fake('c')])
    assert.equal(await pool.dispatch(TASK, 'c'), 'c')
    assert.equal(await pool.dispatch(TASK, 'b'), 'a')
    assert.deepEqual(noted(), ['c.dispatch as c', 'b.dispatch', 'a.dispatch as a'])
  })

  test('when all fail, the last error is thrown', async ({ assert }) => {
    const pool = new TransportPool([broken('a'), broken('b')])
    await assert.rejects(() => pool.dispatch(TASK), 'b is down')
    assert.deepEqual(noted(), ['a.dispatch', 'b.dispatch'])
  })

  test('an unknown pin is refused before anything is tried', async ({ assert }) => {
    const pool = new TransportPool([fake('a')])
    await assert.rejects(() => pool.dispatch(TASK, 'x'), 'transport "x" is not registered')
    assert.deepEqual(noted(), [])
  })

  test('turns go to the members that carry turns', async ({ assert }) => {
    const turns = fake('b', {
      dispatchWorkflowTask: async (task) => void calls.push(`b.turn as ${task.transport}`),
    })
    assert.equal(await new TransportPool([fake('a'), turns]).dispatchWorkflowTask(TURN), 'b')
    assert.equal(await new TransportPool([turns, fake('a')]).dispatchWorkflowTask(TURN, 'a'), 'b')
    assert.deepEqual(noted(), ['b.turn as b', 'b.turn as b'])
    await assert.rejects(
      () => new TransportPool([fake('a')]).dispatchWorkflowTask(TURN),
      'no transport can carry this task'
    )
  })

  test('it needs members with ids of their own', ({ assert }) => {
    assert.throws(() => new TransportPool([]), 'transports must not be empty')
    assert.throws(() => new TransportPool([fake('a'), fake('a')]), /unique ids/)
  })

  test('members are found by id', ({ assert }) => {
    const [a, b] = [fake('a'), fake('b')]
    const pool = new TransportPool([a, b])
    assert.strictEqual(pool.primary, a.transport)
    assert.strictEqual(pool.member(), a.transport)
    assert.strictEqual(pool.member('b'), b.transport)
    assert.deepEqual(pool.ids, ['a', 'b'])
    assert.throws(() => pool.member('c'), /not registered/)
  })
})

test.group('transport pool | hooks', (group) => {
  group.each.setup(() => () => void noted())

  test('answers are taken from every member; missing hooks are skipped', ({ assert }) => {
    const full = fake('b', {
      onStepEvent: () => void calls.push('b.onStepEvent'),
      onDecision: () => void calls.push('b.onDecision'),
      onStartRun: () => void calls.push('b.onStartRun'),
      handle: (name, _fn, partition) => void calls.push(`b.handle ${name} ${partition}`),
      useNamespace: (namespace) => void calls.push(`b.useNamespace ${namespace}`),
      deferConsumers: () => void calls.push('b.deferConsumers'),
      startConsumers: () => void calls.push('b.startConsumers'),
    })
    const pool = new TransportPool([fake('a'), full])
    const handler = () => Promise.resolve()
    pool.bind({
      onResult: handler,
      onHeartbeat: handler,
      onStepEvent: handler,
      onDecision: handler,
    })
    pool.onStartRun(handler)
    pool.handle('n', () => 1, 'p')
    pool.useNamespace('ns')
    pool.deferConsumers()
    pool.startConsumers()
    assert.deepEqual(noted(), [
      'a.onResult',
      'a.onHeartbeat',
      'b.onResult',
      'b.onHeartbeat',
      'b.onStepEvent',
      'b.onDecision',
      'b.onStartRun',
      'b.handle n p',
      'b.useNamespace ns',
      'b.deferConsumers',
      'b.startConsumers',
    ])
    assert.isTrue(pool.servesSteps)
    assert.isFalse(new TransportPool([fake('a')]).servesSteps)
  })

  test('close reaches every member and reports the first failure', async ({ assert }) => {
    const close = (id: string, fails: boolean) =>
      fake(id, {
        close: async () => {
          calls.push(`${id}.close`)
          if (fails) throw new Error(`${id} does not close`)
        },
      })
    const pool = new TransportPool([fake('x'), close('a', true), close('b', false)])
    await assert.rejects(() => pool.close(), 'a does not close')
    assert.deepEqual(noted(), ['a.close', 'b.close'])
  })

  test('volatile members say what runs here', ({ assert }) => {
    const pool = new TransportPool([
      fake('broker'),
      fake('local', {
        volatile: true,
        isRunning: (stepId) => stepId === 'r:1',
        beatEvery: (ms) => void calls.push(`local.beatEvery ${ms}`),
      }),
    ])
    pool.beatEvery(250)
    assert.deepEqual(noted(), ['local.beatEvery 250'])
    assert.isFalse(pool.volatile())
    assert.isTrue(pool.volatile('local'))
    assert.isTrue(pool.isRunning('r:1'))
    assert.isFalse(pool.isRunning('r:2'))
  })

  test('the run queue is the first member that has one', ({ assert }) => {
    const queue = fake('b', {
      dispatchRun: () => Promise.resolve(),
      onRun: () => () => Promise.resolve(),
    })
    assert.strictEqual(new TransportPool([fake('a'), queue]).runQueue as unknown, queue.transport)
    assert.isUndefined(new TransportPool([fake('a')]).runQueue)
  })
})

test.group('transport pool | introspection', () => {
  const worker = (instanceId: string, group = 'g'): WorkerHeartbeat => ({
    group,
    instanceId,
    lastBeatAt: 1,
  })
  const descriptor = (instanceId: string) => ({ instanceId }) as WorkerDescriptor
  const health = (more: Partial<GroupHealth>) => async (): Promise<GroupHealth> => ({
    group: 'g',
    depth: 0,
    liveWorkers: [],
    ...more,
  })

  test('health is summed, workers are merged by instance', async ({ assert }) => {
    const pool = new TransportPool([
      fake('a', { groupHealth: health({ depth: 2, liveWorkers: [worker('1'), worker('2')] }) }),
      fake('b'),
      fake('c', { groupHealth: health({ depth: 3, liveWorkers: [worker('2')], kind: 'step' }) }),
    ])
    assert.deepEqual(await pool.groupHealth('g'), {
      group: 'g',
      depth: 5,
      liveWorkers: [worker('1'), worker('2')],
      kind: 'step',
    })
    assert.isUndefined(await new TransportPool([fake('a')]).groupHealth('g'))
  })

  test('groups, descriptors and heartbeats are united', async ({ assert }) => {
    const pool = new TransportPool([
      fake('a', {
        listWorkerGroups: async () => ['x', 'y'],
        listWorkerDescriptors: async (token) => [descriptor(`1${token}`)],
        readAllWorkerDescriptors: async () => [descriptor('1'), descriptor('2')],
        readAllWorkerHeartbeats: async () => [worker('1', 'x'), worker('1', 'y')],
      }),
      fake('b', {
        listWorkerGroups: async () => ['y', 'z'],
        listWorkerDescriptors: async () => [descriptor('1t'), descriptor('2')],
        readAllWorkerDescriptors: async () => [descriptor('2')],
        readAllWorkerHeartbeats: async () => [worker('1', 'x'), worker('2', 'x')],
      }),
    ])
    assert.deepEqual(await pool.listWorkerGroups(), ['x', 'y', 'z'])
    assert.deepEqual(await pool.listWorkerDescriptors('t'), [descriptor('1t'), descriptor('2')])
    assert.deepEqual(await pool.readAllWorkerDescriptors(), [descriptor('1'), descriptor('2')])
    assert.deepEqual(await pool.readAllWorkerHeartbeats(), [
      worker('1', 'x'),
      worker('1', 'y'),
      worker('2', 'x'),
    ])
    const live = await pool.transportWithLiveGroup('z')
    assert.equal(live?.id, 'b')
    assert.isUndefined(await pool.transportWithLiveGroup('nobody'))
    assert.isTrue(pool.introspectsFleet)
  })

  test('without a member that can tell, everything is empty and says so', async ({ assert }) => {
    const pool = new TransportPool([fake('a')])
    assert.deepEqual(await pool.listWorkerGroups(), [])
    assert.deepEqual(await pool.listWorkerDescriptors('t'), [])
    assert.isUndefined(await pool.transportWithLiveGroup('x'))
    assert.isFalse(pool.introspectsFleet)
  })

  test('a member that is down is left out, unless nobody answers', async ({ assert }) => {
    const down = fake('a', { listWorkerGroups: () => Promise.reject(new Error('down')) })
    const up = fake('b', { listWorkerGroups: async () => ['x'] })
    assert.deepEqual(await new TransportPool([down, up]).listWorkerGroups(), ['x'])
    await assert.rejects(() => new TransportPool([down]).listWorkerGroups(), 'down')
  })
})
