/*
 * Schedules in code: one run a window whoever ticks, and what holds a window back.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { runTick } from '../../src/loop/tick.ts'
import { runSchedules } from '../../src/schedules/scheduler.ts'
import type { ScheduledWorkflow } from '../../src/types/scheduled_workflow.ts'
import { storesUnderTest, T0, useWorld, type World } from '../helpers/engines.ts'

const MINUTE = 60_000
const every = (everyMs: number, more: Partial<ScheduledWorkflow> = {}): ScheduledWorkflow => ({
  key: 'report',
  workflow: 'report',
  everyMs,
  ...more,
})

const bucketAt = (now: number, everyMs = MINUTE) => Math.floor(now / everyMs)
const idAt = (now: number, everyMs = MINUTE) => `sched:report:${bucketAt(now, everyMs)}`

/** An engine with a workflow that ends at once, and one that waits for a signal named after its run. */
function engineIn(world: World): WorkflowEngine {
  const engine = world.engine()
  engine.register('report', '1', async (_, input) => input ?? 'done')
  engine.register('long', '1', (ctx) => ctx.waitForSignal(`end:${ctx.runId}`))
  return engine
}

const idsIn = async (world: World, workflow?: string): Promise<string[]> => {
  const runs = await world.store.listRuns(workflow === undefined ? {} : { workflow })
  return runs.map(({ id }) => id).sort()
}

/** What a tick of the schedules that this engine knows starts. */
async function firedBy(engine: WorkflowEngine): Promise<string[]> {
  const { started } = await engine.fireSchedules()
  return started.map(({ runId }) => runId)
}

for (const kind of await storesUnderTest()) {
  test.group(`schedules | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a window starts once across a fleet, however often and by whomever it is ticked', async ({
      assert,
    }) => {
      const fleet = [engineIn(world), engineIn(world), engineIn(world)]
      const started: string[] = []
      for (const engine of fleet)
        engine.subscribe(({ type, runId }) => void (type === 'run.started' && started.push(runId)))
      const schedules = [every(MINUTE, { input: { a: 1 } })]
      const expected: string[] = []
      for (let minute = 0; minute < 3; minute++) {
        for (let tick = 0; tick < 3; tick++) {
          await Promise.all(fleet.map((engine) => runTick(engine, { schedules })))
          await world.quiet()
        }
        expected.push(idAt(world.time.now))
        await world.time.advance(MINUTE)
      }
      assert.deepEqual(await idsIn(world), expected)
      for (const id of expected) assert.deepEqual(await world.output(id), { a: 1 })
      assert.deepEqual(started.sort(), expected)
    }).tags(['@control-47'])

    test('a window ticked again starts and reports nothing, also in a process that is new', async ({
      assert,
    }) => {
      const engine = engineIn(world)
      const schedules = [every(MINUTE)]
      assert.lengthOf(await runSchedules(engine, schedules, T0), 1)
      assert.lengthOf(await runSchedules(engine, schedules, T0 + 20_000), 0)
      assert.lengthOf(await runSchedules(engineIn(world), schedules, T0 + 20_000), 0)
      assert.lengthOf(await runSchedules(engine, schedules, T0 + MINUTE), 1)
    }).tags(['@control-46'])

    test('cron names its runs by when they fire', async ({ assert }) => {
      const engine = engineIn(world)
      const cron = {
        key: 'report',
        workflow: 'report',
        cron: '0 2 * * *',
        timezone: 'Europe/Berlin',
      }
      const [run] = await runSchedules(engine, [cron], T0)
      assert.equal(run.runId, `sched:report:${Date.UTC(2030, 0, 15, 1)}`)
      assert.deepPropertyVal(await world.ended(run.runId), 'tags', ['schedule:report'])
    })

    test('overlap skip holds back every later window, and only of its own schedule', async ({
      assert,
    }) => {
      const engine = engineIn(world)
      const schedules = [
        every(MINUTE, { workflow: 'long', overlap: 'skip' }),
        { ...every(MINUTE), key: 'other' },
      ]
      const first = idAt(T0)
      for (let minute = 0; minute < 4; minute++) {
        await runSchedules(engine, schedules, T0 + minute * MINUTE)
        await world.parked(first)
      }
      assert.lengthOf(await world.store.listRuns({ workflow: 'long' }), 1)
      assert.lengthOf(await world.store.listRuns({ workflow: 'report' }), 4)
      await engine.signal(`end:${first}`, null)
      await world.ended(first)
      await runSchedules(engine, schedules, T0 + 3 * MINUTE)
      await world.parked(idAt(T0 + 3 * MINUTE))
      assert.deepEqual(await idsIn(world, 'long'), [first, idAt(T0 + 3 * MINUTE)])
    })

    test('backfill catches up with the windows before, oldest first', async ({ assert }) => {
      const engine = engineIn(world)
      const schedules = [every(MINUTE, { backfill: { maxCatchup: 3 } })]
      const windows = [3, 2, 1, 0].map((back) => idAt(T0 - back * MINUTE))
      const caught = await runSchedules(engine, schedules, T0)
      assert.deepEqual(
        caught.map(({ runId }) => runId),
        windows
      )
      assert.lengthOf(await runSchedules(engine, schedules, T0), 0)
      const later = await runSchedules(engine, schedules, T0 + 2 * MINUTE)
      assert.deepEqual(
        later.map(({ runId }) => runId),
        [idAt(T0 + MINUTE), idAt(T0 + 2 * MINUTE)]
      )
    })
  })
}

const [memory] = await storesUnderTest()

test.group('schedules | runtime control', (group) => {
  const world = useWorld(group, memory)

  test('a paused schedule starts nothing until it is resumed', async ({ assert }) => {
    const engine = engineIn(world)
    await engine.registerSchedules([every(MINUTE), { ...every(MINUTE), key: 'off', paused: true }])
    assert.isFalse(engine.setSchedulePaused('unknown', true))
    assert.isTrue(engine.setSchedulePaused('report', true))
    assert.deepEqual(await firedBy(engine), [])
    engine.setSchedulePaused('report', false)
    engine.setSchedulePaused('off', false)
    const { started } = await engine.fireSchedules()
    assert.deepEqual(
      started.map(({ runId }) => runId),
      [idAt(T0), `sched:off:${bucketAt(T0)}`]
    )
  })

  test('trigger starts the current window whatever holds it back, once', async ({ assert }) => {
    const engine = engineIn(world)
    await engine.registerSchedules([every(MINUTE, { paused: true, jitter: '50s' })])
    assert.isNull(await engine.triggerSchedule('unknown'))
    const triggered = await engine.triggerSchedule('report')
    assert.equal(triggered?.runId, idAt(T0))
    await world.ended(idAt(T0))
    assert.propertyVal(await engine.triggerSchedule('report'), 'status', 'completed')
    engine.setSchedulePaused('report', false)
    assert.deepEqual(await firedBy(engine), [])
  })

  test('the list shows windows, state and where a schedule comes from', async ({ assert }) => {
    const engine = engineIn(world)
    await engine.registerSchedules([{ key: 'nightly', workflow: 'report', cron: '0 2 * * *' }])
    await engine.registerSchedules([every(MINUTE, { overlap: 'skip' })], 'class')
    await engine.triggerSchedule('report')
    await world.ended(idAt(T0))
    assert.deepEqual(await engine.listSchedules(), [
      {
        key: 'nightly',
        workflow: 'report',
        cron: '0 2 * * *',
        timezone: 'UTC',
        source: 'config',
        paused: false,
        overlap: 'allow',
        current: {
          at: Date.UTC(2030, 0, 15, 2),
          runId: `sched:nightly:${Date.UTC(2030, 0, 15, 2)}`,
        },
        nextAt: Date.UTC(2030, 0, 16, 2),
      },
      {
        key: 'report',
        workflow: 'report',
        everyMs: MINUTE,
        source: 'class',
        paused: false,
        overlap: 'skip',
        current: { at: T0, runId: idAt(T0), status: 'completed' },
        nextAt: T0 + MINUTE,
      },
    ])
  })
})

test.group('schedules | jitter', (group) => {
  const world = useWorld(group, memory)
  const schedules = [every(10 * MINUTE, { jitter: '8m' })]

  test('every process waits until the same moment within the window, and the tick does not', async ({
    assert,
  }) => {
    const fleet = [engineIn(world), engineIn(world)]
    for (const engine of fleet) assert.lengthOf(await runSchedules(engine, schedules, T0), 0)
    assert.deepEqual(await idsIn(world), [])
    assert.lengthOf(await runSchedules(fleet[0], schedules, T0 + 1), 0)
    await world.time.advance(8 * MINUTE)
    const run = await world.ended(idAt(T0, 10 * MINUTE))
    assert.deepEqual(await idsIn(world), [run.id])
    assert.isBelow(run.createdAt.getTime(), T0 + 8 * MINUTE)
    assert.isAbove(run.createdAt.getTime(), T0)
  })

  test('a drain starts what waits, and waits for it', async ({ assert }) => {
    const engine = engineIn(world)
    await runSchedules(engine, schedules, T0)
    await engine.drain()
    assert.equal(await world.status(idAt(T0, 10 * MINUTE)), 'pending')
    assert.lengthOf(await runSchedules(engine, schedules, T0 + 10 * MINUTE), 0)
  })

  test('a schedule that is paused meanwhile starts nothing', async ({ assert }) => {
    const engine = engineIn(world)
    await runSchedules(engine, schedules, T0)
    engine.setSchedulePaused('report', true)
    await world.time.advance(10 * MINUTE)
    assert.deepEqual(await idsIn(world), [])
  })
})

test.group('schedules | isolation', (group) => {
  const world = useWorld(group, memory)

  test('one that fails does not keep the others from their work', async ({ assert }) => {
    const engine = engineIn(world)
    const lazy = async () => ({ default: class {} })
    const bad: ScheduledWorkflow[] = [
      { key: 'unregistered', workflow: 'nobody', everyMs: MINUTE },
      { key: 'unresolved', workflow: lazy, everyMs: MINUTE },
      { key: 'pattern', workflow: 'report', cron: '99 * * * *' },
    ]
    const failed: [string, string][] = []
    const onError = (error: unknown, key: string) => void failed.push([key, String(error)])
    const started = await runSchedules(engine, [...bad, every(MINUTE)], T0, { onError })
    assert.deepEqual(
      started.map(({ runId }) => runId),
      [idAt(T0)]
    )
    assert.deepEqual(
      failed.map(([key]) => key),
      ['unregistered', 'unresolved', 'pattern']
    )
    assert.match(failed[0][1], /workflow nobody is not registered/)
    assert.match(failed[1][1], /schedule "unresolved": its workflow is a lazy import/)
    assert.match(failed[2][1], /schedule "pattern": cron "99 \* \* \* \*" cannot be used/)
    const { errors, scheduled } = await runTick(world.engine(), { schedules: bad })
    assert.deepEqual(
      errors.map(({ phase }) => phase),
      ['runSchedules', 'runSchedules', 'runSchedules']
    )
    assert.equal(scheduled, 0)
  })

  test('without a listener the call rejects after all did their work', async ({ assert }) => {
    const engine = engineIn(world)
    const wrong = { key: 'wrong', workflow: 'nobody', everyMs: MINUTE }
    await assert.rejects(
      () => runSchedules(engine, [wrong, every(MINUTE)], T0),
      /nobody is not registered/
    )
    assert.deepEqual(await idsIn(world), [idAt(T0)])
  })

  test('a refused start is tried again while its window is current, and told once a minute', async ({
    assert,
  }) => {
    const engine = engineIn(world)
    const gate = deferred<void>()
    let full = true
    engine.register('busy', '1', () => gate.promise, {
      validateInput: () => (full ? 'full' : undefined),
    })
    await engine.registerSchedules([{ key: 'busy', workflow: 'busy', everyMs: 10 * MINUTE }])
    const failures = async (now: number) => {
      const { failures: told } = await engine.fireSchedules({ now })
      return told.length
    }
    assert.equal(await failures(T0), 1)
    assert.equal(await failures(T0 + 1000), 0)
    assert.equal(await failures(T0 + MINUTE), 1)
    full = false
    const { started } = await engine.fireSchedules({ now: T0 + 2 * MINUTE })
    assert.equal(started[0].runId, `sched:busy:${bucketAt(T0, 10 * MINUTE)}`)
    gate.resolve()
    await world.ended(started[0].runId)
  })
})
