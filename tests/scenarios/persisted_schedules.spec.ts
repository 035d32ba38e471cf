/*
 * Schedules kept in the store: managed while the application runs, fired by whoever ticks.
 */
import { test } from '@japa/runner'
import {
  type InvalidArgumentError,
  ScheduleAlreadyExistsError,
  ScheduleNotFoundError,
  StoreCapabilityError,
} from '../../src/errors.ts'
import { runTick } from '../../src/loop/tick.ts'
import type { WorkflowEngineDeps } from '../../src/engine/deps.ts'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { PersistedSchedule } from '../../src/types/schedule.ts'
import type { NewSchedule } from '../../src/types/scheduled_workflow.ts'
import { storesUnderTest, T0, useWorld, type World } from '../helpers/engines.ts'

const MINUTE = 60_000
const HOURLY: NewSchedule = {
  id: 'sync',
  workflow: 'sync',
  everyMs: 60 * MINUTE,
  input: { shop: 1 },
}
/** T0 is half past eight: the window of nine o'clock is the first that begins after it. */
const NINE = T0 + 30 * MINUTE
const idAt = (at: number, id = 'sync') => `sched:${id}:${at / (60 * MINUTE)}`

function engineIn(world: World, deps: Partial<WorkflowEngineDeps> = {}) {
  const engine = world.engine({ persistedSchedules: true, ...deps })
  engine.register('sync', '1', async (_, input) => input)
  return engine
}

/** What a tick of this engine's persisted schedules starts. */
async function tickedBy({ schedules }: WorkflowEngine): Promise<string[]> {
  const { started } = await schedules.tick()
  return started.map(({ runId }) => runId)
}

async function scheduledBy(engine: WorkflowEngine): Promise<number> {
  const { scheduled } = await runTick(engine)
  return scheduled
}

const idsOf = (schedules: PersistedSchedule[]) => schedules.map(({ id }) => id)

const kinds = await storesUnderTest()

for (const kind of kinds.filter(({ complete }) => complete)) {
  test.group(`persisted schedules | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a schedule is created once, read, listed, changed and deleted', async ({ assert }) => {
      const { schedules } = engineIn(world)
      const created = await schedules.create({ ...HOURLY, jitter: '5s', overlap: 'skip' })
      assert.deepInclude(created, {
        ...HOURLY,
        jitter: '5s',
        overlap: 'skip',
        paused: false,
        createdAt: new Date(T0),
      })
      const again = await schedules.create(HOURLY).catch((error: unknown) => error)
      assert.instanceOf(again, ScheduleAlreadyExistsError)
      assert.equal((again as ScheduleAlreadyExistsError).scheduleId, 'sync')
      assert.deepEqual(await schedules.get('sync'), created)
      await schedules.create({ ...HOURLY, id: 'other', paused: true })
      assert.deepEqual(idsOf(await schedules.list()), ['other', 'sync'])
      await schedules.pause('sync')
      const changed = await schedules.upsert({ id: 'sync', workflow: 'later', cron: '0 2 * * *' })
      assert.deepInclude(changed, { workflow: 'later', cron: '0 2 * * *', paused: true })
      assert.notProperty(changed, 'everyMs')
      await schedules.resume('sync')
      assert.propertyVal(await schedules.get('sync'), 'paused', false)
      await schedules.delete('sync')
      assert.deepEqual(idsOf(await schedules.list()), ['other'])
      await schedules.upsert(HOURLY)
      assert.propertyVal(await schedules.get('sync'), 'everyMs', HOURLY.everyMs)
    })

    test('every verb names an id that is unknown', async ({ assert }) => {
      const { schedules } = engineIn(world)
      for (const verb of ['get', 'pause', 'resume', 'trigger', 'delete'] as const) {
        const error = await schedules[verb]('nobody').catch((thrown: unknown) => thrown)
        assert.instanceOf(error, ScheduleNotFoundError, verb)
        assert.equal((error as ScheduleNotFoundError).scheduleId, 'nobody')
      }
    })

    test('a fleet starts each window once, and none that began before the schedule', async ({
      assert,
    }) => {
      const fleet = [engineIn(world), engineIn(world)]
      await fleet[0].schedules.create({ ...HOURLY, backfill: { maxCatchup: 5 } })
      await Promise.all(fleet.map((engine) => runTick(engine)))
      assert.deepEqual(await world.store.listRuns({}), [])
      await world.time.advance(30 * MINUTE)
      for (let n = 0; n < 2; n++) await Promise.all(fleet.map((engine) => runTick(engine)))
      const run = await world.ended(idAt(NINE))
      assert.deepEqual([run.output, run.tags], [{ shop: 1 }, ['schedule:sync']])
      assert.lengthOf(await world.store.listRuns({}), 1)
      assert.propertyVal(await fleet[1].schedules.get('sync'), 'lastFiredAt', NINE)
    })

    test('pause and delete hold for every process at once; trigger starts the window anyhow', async ({
      assert,
    }) => {
      const [one, two] = [engineIn(world), engineIn(world)]
      await one.schedules.create(HOURLY)
      await one.schedules.pause('sync')
      await world.time.advance(30 * MINUTE)
      assert.deepEqual(await tickedBy(two), [])
      assert.propertyVal(await two.schedules.trigger('sync'), 'runId', idAt(NINE))
      await one.schedules.resume('sync')
      assert.deepEqual(await tickedBy(two), [])
      await one.schedules.delete('sync')
      await world.time.advance(60 * MINUTE)
      assert.deepEqual(await tickedBy(two), [])
      await world.ended(idAt(NINE))
    })

    test('an engine ticks the schedules of its namespace, one without a namespace all', async ({
      assert,
    }) => {
      const [acme, other] = [
        engineIn(world, { namespace: 'acme' }),
        engineIn(world, { namespace: 'other' }),
      ]
      await acme.schedules.create(HOURLY)
      await acme.schedules.create({ ...HOURLY, id: 'theirs', namespace: 'other' })
      await world.time.advance(30 * MINUTE)
      assert.deepEqual(await tickedBy(acme), [idAt(NINE)])
      assert.deepEqual(await tickedBy(other), [idAt(NINE, 'theirs')])
      assert.propertyVal(await world.ended(idAt(NINE)), 'namespace', 'acme')
      assert.propertyVal(await world.ended(idAt(NINE, 'theirs')), 'namespace', 'other')
      await world.time.advance(60 * MINUTE)
      assert.lengthOf(await tickedBy(engineIn(world)), 2)
    })

    test('a row that cannot be read stops no other', async ({ assert }) => {
      const engine = engineIn(world)
      const at = new Date(T0)
      const row = { workflow: 'sync', paused: false, createdAt: at, updatedAt: at }
      await world.store.createSchedule({ ...row, id: 'a', spec: { cron: 'nonsense' } })
      await world.store.createSchedule({ ...row, id: 'b', spec: 7 })
      await engine.schedules.create(HOURLY)
      await world.time.advance(30 * MINUTE)
      const { scheduled, errors } = await runTick(engine)
      assert.equal(scheduled, 1)
      assert.deepEqual(
        errors.map(({ phase, error }) => [phase, (error as InvalidArgumentError).argument]),
        [
          ['runSchedules', 'schedule "a"'],
          ['runSchedules', 'schedule "b"'],
        ]
      )
      assert.lengthOf(await engine.schedules.list(), 3)
    })
  })
}

const [memory, , required] = kinds

test.group('persisted schedules | what is refused', (group) => {
  const world = useWorld(group, memory)

  test('options that cannot be used, by a sentence with the id', async ({ assert }) => {
    const { schedules } = engineIn(world)
    for (const [wrong, message] of [
      [{ everyMs: undefined }, /^schedule "sync" needs exactly one of everyMs and cron$/],
      [{ cron: '0 2 * * *' }, /^schedule "sync" needs exactly one of everyMs and cron$/],
      [{ jitter: 'soon' }, /^schedule "sync" jitter cannot be used/],
      [{ workflow: '' }, /^schedule "sync": its workflow must not be empty/],
      [{ everyMs: undefined, cron: '0 0 30 2 *' }, /^schedule "sync": cron "0 0 30 2 \*" cannot/],
      [{ id: '' }, /^schedule "": the key must not be empty$/],
    ] as const) {
      await assert.rejects(() => schedules.create({ ...HOURLY, ...wrong }), message)
    }
    assert.deepEqual(await schedules.list(), [])
  })

  test('the key of a schedule in code, when it is created and when it is fired', async ({
    assert,
  }) => {
    const [one, two] = [engineIn(world), engineIn(world)]
    await one.schedules.create(HOURLY)
    await two.registerSchedules([{ key: 'sync', workflow: 'sync', everyMs: 60 * MINUTE }])
    await assert.rejects(() => two.schedules.create(HOURLY), /has the key of a schedule in code/)
    await world.time.advance(30 * MINUTE)
    const { failures } = await two.schedules.tick()
    assert.match(String(failures[0].error), /has the key of a schedule in code/)
  })

  test('a workflow that is registered elsewhere is accepted', async ({ assert }) => {
    const { schedules } = engineIn(world)
    const created = await schedules.create({ ...HOURLY, workflow: 'elsewhere' })
    assert.equal(created.workflow, 'elsewhere')
  })

  test('without persistedSchedules a tick leaves them alone', async ({ assert }) => {
    const engine = engineIn(world, { persistedSchedules: false })
    await engine.schedules.create(HOURLY)
    await world.time.advance(30 * MINUTE)
    assert.equal(await scheduledBy(engine), 0)
  })
})

test.group('persisted schedules | a store that keeps none', (group) => {
  const world = useWorld(group, required)

  test('is refused with the members it lacks', async ({ assert }) => {
    const lacks = /createSchedule, updateSchedule, getSchedule, listSchedules, deleteSchedule/
    assert.throws(() => engineIn(world), lacks)
    const engine = engineIn(world, { persistedSchedules: false })
    const error = await engine.schedules.create(HOURLY).catch((thrown: unknown) => thrown)
    assert.instanceOf(error, StoreCapabilityError)
    assert.match(String(error), lacks)
  })
})
