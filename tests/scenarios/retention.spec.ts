/*
 * Retention: what is deleted, what is kept although it is old, and what one run that cannot be deleted
 * means for the others.
 */
import { test } from '@japa/runner'
import type { RetentionConfig, WorkflowRun } from '../../index.ts'
import { fullStore } from '../../src/store/full_store.ts'
import { CodecStateStore } from '../../src/store/codec/codec_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { childIdOf, childToken } from '../../src/foundation/ids.ts'
import { stepRow } from '../insight/rows.ts'
import { storesUnderTest, T0, useWorld, type World } from '../helpers/engines.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const row = (id: string, patch: Partial<WorkflowRun> & { daysOld?: number } = {}): WorkflowRun => {
  const { daysOld = 60, ...given } = patch
  const at = new Date(T0 - daysOld * DAY)
  return {
    id,
    workflow: 'order',
    workflowVersion: '1',
    status: 'completed',
    namespace: 'default',
    input: null,
    output: 1,
    createdAt: at,
    updatedAt: at,
    ...given,
  }
}

async function put(world: World, ...runs: WorkflowRun[]): Promise<void> {
  for (const run of runs) await world.store.createRun(run)
}

async function idsOf(world: World): Promise<string[]> {
  const runs = await world.store.listRuns({})
  return runs.map(({ id }) => id).sort()
}

const engineOf = (world: World, retention: RetentionConfig) =>
  world.engine({ retention, transport: 'none', namespace: 'default' })

const KINDS = ['in memory', 'in memory, required members only', 'Lucid on postgres']
const kinds = await storesUnderTest()

for (const kind of kinds.filter(({ name }) => KINDS.includes(name))) {
  test.group(`retention | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('each status has its own age; live runs and the rest stay', async ({ assert }) => {
      await put(
        world,
        row('done old', { daysOld: 8 }),
        row('done new', { daysOld: 6 }),
        row('failed', { daysOld: 8, status: 'failed' }),
        row('failed long ago', { daysOld: 31, status: 'failed' }),
        row('cancelled', { daysOld: 900, status: 'cancelled' }),
        row('dead', { daysOld: 1, status: 'dead' }),
        row('waiting', { daysOld: 900, status: 'suspended' }),
        row('elsewhere', { daysOld: 900, namespace: 'other' })
      )
      const engine = engineOf(world, { completed: '7d', failed: 30 * DAY, dead: 0 })
      assert.equal(await engine.sweepRetention(), 3)
      assert.deepEqual(await idsOf(world), [
        'cancelled',
        'done new',
        'elsewhere',
        'failed',
        'waiting',
      ])
    })

    test('a policy keeps the newest of its scope, and none beyond an age', async ({ assert }) => {
      for (let day = 1; day <= 6; day++) {
        await put(world, row(`a${day}`, { daysOld: day, tags: ['free'] }))
        await put(world, row(`b${day}`, { daysOld: day }))
        await put(world, row(`c${day}`, { daysOld: day, namespace: 'other' }))
      }
      const statuses: ['completed'] = ['completed']
      const engine = engineOf(world, {
        policies: [
          { statuses, maxCount: 4, maxAge: 2.5 * DAY, scope: { tag: 'free' } },
          { statuses, maxCount: 0, scope: { namespace: 'other' } },
        ],
      })
      assert.equal(await engine.sweepRetention(), 10)
      const left = await idsOf(world)
      assert.deepEqual(
        left.filter((id) => !id.startsWith('b')),
        ['a1', 'a2']
      )
      assert.lengthOf(left, 8)
    })

    test('of runs that began together the order of ids decides which are the newest', async ({
      assert,
    }) => {
      await put(world, row('x2'), row('x1'), row('x4'), row('x3'))
      const policies = [{ statuses: ['completed' as const], maxCount: 2, scope: {} }]
      assert.equal(await engineOf(world, { policies }).sweepRetention(), 2)
      assert.deepEqual(await idsOf(world), ['x3', 'x4'])
    })

    test('what a run started goes with it, unless some of it is under way', async ({ assert }) => {
      const spawn = (runId: string, childId: string) =>
        stepRow(0, { runId, name: `spawn:${childId}`, kind: 'local', output: childId })
      for (const parent of ['p', 'q']) {
        await put(world, row(parent), row(`${parent} child`, { daysOld: 1, status: 'failed' }))
        await put(world, row(`${parent} grandchild`, { daysOld: 1 }))
        await world.store.saveCheckpoint(spawn(parent, `${parent} child`))
        await world.store.saveCheckpoint(spawn(`${parent} child`, `${parent} grandchild`))
      }
      await world.store.updateRun('q grandchild', { status: 'suspended' })
      assert.equal(await engineOf(world, { completed: '30d' }).sweepRetention(), 3)
      assert.deepEqual(await idsOf(world), ['q', 'q child', 'q grandchild'])
      assert.isEmpty(await world.store.listCheckpoints('p'))
    })

    test('a pass looks at 100 runs, at most once a minute, and the next one goes on', async ({
      assert,
    }) => {
      for (let index = 0; index < 130; index++) {
        const createdAt = new Date(T0 - 60 * DAY + index)
        await put(world, row(`r${index}`, { createdAt }))
      }
      const engine = engineOf(world, { completed: '30d' })
      assert.equal(await engine.sweepRetention(T0), 100)
      assert.equal(await engine.sweepRetention(T0 + MINUTE - 1), 0)
      assert.equal(await engine.sweepRetention(T0 + MINUTE), 30)
      assert.isEmpty(await idsOf(world))
    })

    test('a listener sees every run with its history before it goes, and keeps what it throws at', async ({
      assert,
    }) => {
      await put(world, row('a'), row('b'), row('c'))
      await world.store.saveCheckpoint(stepRow(0, { runId: 'a' }))
      const engine = engineOf(world, { completed: '30d' })
      const seen: string[] = []
      const stop = engine.onEvict(async (run, checkpoints) => {
        const stands = await world.store.getRun(run.id)
        seen.push(`${run.id} ${checkpoints.length} ${stands!.status}`)
        if (run.id === 'b') throw new Error('the archive is full')
      })
      assert.equal(await engine.sweepRetention(T0), 2)
      assert.deepEqual(seen.sort(), ['a 1 completed', 'b 0 completed', 'c 0 completed'])
      assert.deepEqual(await idsOf(world), ['b'])
      stop()
      assert.equal(await engine.sweepRetention(T0 + MINUTE), 1)
    })

    test('runs that cannot go do not hold up those behind them', async ({ assert }) => {
      for (let index = 0; index < 150; index++) {
        await put(world, row(`stuck${index}`, { createdAt: new Date(T0 - 90 * DAY) }))
      }
      await put(world, row('free'))
      const engine = engineOf(world, { completed: '30d' })
      engine.onEvict((run) => {
        if (run.id.startsWith('stuck')) throw new Error('not this one')
      })
      let gone = 0
      for (let pass = 0; pass < 4; pass++) gone += await engine.sweepRetention(T0 + pass * MINUTE)
      assert.equal(gone, 1)
      assert.notInclude(await idsOf(world), 'free')
    })

    test('a run that is brought back while it is archived stays', async ({ assert }) => {
      await put(world, row('r', { status: 'failed' }))
      const engine = engineOf(world, { failed: '30d' })
      engine.onEvict(async ({ id }) => {
        await world.store.updateRun(id, { status: 'pending' })
      })
      assert.equal(await engine.sweepRetention(), 0)
      assert.equal(await world.status('r'), 'pending')
    })
  })
}

const [memory] = kinds
test.group('what retention leaves alone', (group) => {
  const world = useWorld(group, memory)

  test('a child whose parent has not read its result', async ({ assert }) => {
    const child = childIdOf('p', 0)
    await put(world, row('p', { status: 'suspended' }), row(child, { awaited: true }))
    await world.store.putSignalWaiter({ token: childToken(child), runId: 'p', seq: 0 })
    const engine = engineOf(world, { completed: '30d' })
    assert.equal(await engine.sweepRetention(T0), 0)
    await world.store.takeSignalWaiter(childToken(child))
    assert.equal(await engine.sweepRetention(T0 + MINUTE), 1)
  })

  test('runs of windows that a process that is started later would start again', async ({
    assert,
  }) => {
    const schedules = [
      { key: 'daily', workflow: 'order', everyMs: DAY, backfill: { maxCatchup: 1 } },
    ]
    const engine = engineOf(world, { completed: '1h' })
    engine.register('order', '1', async () => 1)
    await engine.registerSchedules(schedules)
    const fired = async (by: typeof engine) => {
      const { started } = await by.fireSchedules()
      await world.quiet()
      return started.length
    }
    assert.equal(await fired(engine), 2)
    await world.time.advance(DAY)
    assert.equal(await fired(engine), 1)
    await world.time.advance(2 * HOUR)
    assert.equal(await engine.sweepRetention(), 1)
    const later = engineOf(world, {})
    later.register('order', '1', async () => 1)
    await later.registerSchedules(schedules)
    assert.equal(await fired(later), 0)
  })

  test('a handler of a failure while lost handlers are still looked for', async ({ assert }) => {
    const at = new Date(T0 - 30 * MINUTE)
    await put(world, row('onerror:r', { createdAt: at, updatedAt: at }))
    const engine = engineOf(world, { completed: '1m' })
    assert.equal(await engine.sweepRetention(T0), 0)
    assert.equal(await engine.sweepRetention(T0 + HOUR), 1)
  })

  test('everything while the engine drains, and where nothing is configured', async ({
    assert,
  }) => {
    await put(world, row('r'))
    assert.equal(await engineOf(world, {}).sweepRetention(), 0)
    const engine = engineOf(world, { completed: '30d' })
    engine.beginDrain()
    assert.equal(await engine.sweepRetention(), 0)
  })

  test('a listener that never ends keeps its run, and no later pass waits for it', async ({
    assert,
  }) => {
    await put(world, row('a'), row('b'))
    const engine = engineOf(world, { completed: '30d' })
    engine.onEvict(({ id }) => (id === 'a' ? new Promise(() => {}) : undefined))
    const pass = engine.sweepRetention(T0)
    await world.quiet()
    // One pass at a time, and what it did is told once.
    assert.equal(await engine.sweepRetention(T0 + 2 * MINUTE), 0)
    await world.time.advance(MINUTE / 2)
    assert.equal(await pass, 1)
    assert.deepEqual(await idsOf(world), ['a'])
  })

  test('listeners that never end hold a pass for a minute and a half, and no run behind them for ever', async ({
    assert,
  }) => {
    for (let index = 0; index < 60; index++) {
      await put(world, row(`hung${index}`, { createdAt: new Date(T0 - 90 * DAY + index) }))
    }
    await put(world, row('free'))
    const engine = engineOf(world, { completed: '30d' })
    const asked: string[] = []
    engine.onEvict(({ id }) => {
      if (id === 'free') return
      asked.push(id)
      return new Promise(() => {})
    })
    const sweep = async (at: number) => {
      const pass = engine.sweepRetention(at)
      await world.quiet()
      await world.time.advance(1.5 * MINUTE)
      return pass
    }
    assert.equal(await sweep(T0), 0)
    assert.lengthOf(asked, 16)
    let gone = 0
    for (let again = 2; again < 6; again++) gone += await sweep(T0 + again * MINUTE)
    assert.equal(gone, 1)
    assert.notInclude(await idsOf(world), 'free')
    assert.lengthOf(new Set(asked), 60)
  })
})

test.group('what retention survives', (group) => {
  const world = useWorld(group, memory)

  test('runs whose payloads cannot be decoded are passed over', async ({ assert }) => {
    const codec = {
      encode: (value: unknown) => value,
      decode: (value: unknown) => {
        if (value === 'sealed') throw new Error('no key')
        return value
      },
    }
    const base = new InMemoryStateStore()
    for (const [id, input] of [
      ['a', 'sealed'],
      ['b', 'plain'],
      ['c', 'sealed'],
    ]) {
      await base.createRun(row(id, { input }))
    }
    const store = new CodecStateStore(base, codec)
    const engine = world.engine({ store, retention: { completed: '30d' }, transport: 'none' })
    assert.equal(await engine.sweepRetention(), 1)
    const left = await fullStore(base).listRuns({})
    assert.deepEqual(left.map(({ id }) => id).sort(), ['a', 'c'])
  })

  test('what fails of one rule does not stop the others, and is told at the end', async ({
    assert,
  }) => {
    await put(world, row('done'), row('failed', { status: 'failed' }))
    await world.store.bufferEvent({ id: 'e', name: 'e', payload: 1, publishedAt: T0 - DAY })
    const engine = world.engine({
      retention: { completed: '30d', failed: '30d' },
      eventBufferTtl: '1h',
      transport: 'none',
    })
    world.gate(engine).around('listRuns', async (proceed, [query]) => {
      if ((query as { statuses: string[] }).statuses[0] === 'completed') throw new Error('no')
      return proceed()
    })
    await assert.rejects(() => engine.sweepRetention(T0), 'no')
    assert.deepEqual(await idsOf(world), ['done'])
    assert.isEmpty(await world.store.listBufferedEvents('e', 1))
  })
})
