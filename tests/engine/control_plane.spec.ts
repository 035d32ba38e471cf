import { test } from '@japa/runner'
import type { ControlPlane } from '../../src/control_plane/port.ts'
import { RedisControlPlane } from '../../src/control_plane/redis/main.ts'
import { LocalControlPlane } from '../../src/control_plane/local.ts'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { isRemoteEvent } from '../../src/wire/remote_events.ts'
import type { ControlMessage } from '../../src/wire/messages.ts'
import { type EngineOptions, storesUnderTest, until, useWorld } from '../helpers/engines.ts'
import { cleanUp, ioRedis, ownPrefix, redisUrl } from '../helpers/redis.ts'

const url = await redisUrl()
const media = ['one bus', ...(url === null ? [] : ['Redis'])]

for (const kind of await storesUnderTest()) {
  for (const medium of media) {
    test.group(`Control plane | ${kind.name} | ${medium}`, (group) => {
      const world = useWorld(group, kind)
      let planes: RedisControlPlane[] = []
      let bus: ControlPlane
      let prefix = ''

      group.each.setup(() => {
        bus = new LocalControlPlane()
        if (url !== null && medium === 'Redis') prefix = ownPrefix(url)
        return async () => {
          for (const opened of planes) await opened.close()
          planes = []
          await cleanUp()
        }
      })

      function plane(): ControlPlane {
        if (url === null || medium !== 'Redis') return bus
        const one = new RedisControlPlane(ioRedis(url), { prefix })
        planes.push(one)
        return one
      }

      async function two(of: EngineOptions = {}): Promise<[WorkflowEngine, WorkflowEngine]> {
        const make = (instanceId: string) =>
          world.engine({ ...of, instanceId, controlPlane: plane() })
        const both: [WorkflowEngine, WorkflowEngine] = [make('a'), make('b')]
        await until(() => planes.every(({ isListening }) => isListening), 'both to listen')
        return both
      }

      test('a cancel is told where a step of the run executes', async ({ assert }) => {
        const [a, b] = await two()
        const aborted = new AbortController()
        const told: string[] = []
        b.register('w', '1', (ctx) =>
          ctx.localStep(
            'long',
            () =>
              new Promise((resolve) => {
                aborted.signal.addEventListener('abort', () => resolve('cut short'))
              })
          )
        )
        b.onCancel((runId) => {
          told.push(runId)
          aborted.abort()
        })
        await b.start('w', null, 'r')
        await world.reached('r', 'running')
        await a.cancel('r')
        await until(() => told.length > 0, 'the cancel')
        await world.quiet()
        assert.deepEqual(told, ['r'])
        assert.equal(await world.status('r'), 'cancelled')
      })

      test('an event of another engine arrives marked, with its date, and its own only once', async ({
        assert,
      }) => {
        const [a, b] = await two()
        const [atA, atB] = [world.eventsOf(a), world.eventsOf(b)]
        a.register('w', '1', async () => 'out')
        await a.start('w', null, 'r')
        await until(() => atB.some(({ type }) => type === 'run.completed'), 'the event')
        assert.deepEqual(
          atB,
          JSON.parse(JSON.stringify(atA), (key, value) => (key === 'at' ? new Date(value) : value))
        )
        assert.deepEqual([atA.some(isRemoteEvent), atB.every(isRemoteEvent)], [false, true])
      })

      test('a run that its starter leaves is taken by another engine without a poll', async ({
        assert,
      }) => {
        const [a, b] = await two()
        a.register('w', '1', async () => 'mine')
        b.register('w', '1', async () => 'theirs')
        const enqueued: string[] = []
        b.onEnqueued((runId) => void enqueued.push(runId))
        a.beginDrain()
        await a.start('w', null, 'r')
        assert.equal(await world.output('r'), 'theirs')
        assert.deepEqual(enqueued, ['r'])
      })

      test('a run that its starter takes is told of, and looked for by nobody', async ({
        assert,
      }) => {
        const [a, b] = await two()
        a.register('w', '1', async () => 'mine')
        const enqueued: string[] = []
        b.onEnqueued((runId) => void enqueued.push(runId))
        await a.start('w', null, 'r')
        await until(() => enqueued.length > 0, 'the news')
        await world.quiet()
        assert.equal(world.gate(b).calls.get('claimDueRuns') ?? 0, 0)
        assert.equal(await world.output('r'), 'mine')
      })

      test('a paused schedule is paused everywhere', async ({ assert }) => {
        const [a, b] = await two()
        for (const engine of [a, b]) {
          engine.register('w', '1', async () => 1)
          await engine.registerSchedules([{ key: 's', workflow: 'w', everyMs: 60_000 }])
        }
        assert.isTrue(a.setSchedulePaused('s', true))
        await until(async () => {
          const [schedule] = await b.listSchedules()
          return schedule.paused
        }, 'the pause')
      })

      test('a pause is said again for who comes later, by who said the last word', async ({
        assert,
      }) => {
        const [a, b] = await two()
        const know = async (engine: WorkflowEngine) => {
          engine.register('w', '1', async () => 1)
          await engine.registerSchedules([{ key: 's', workflow: 'w', everyMs: 3_600_000 }])
        }
        const paused = async (engine: WorkflowEngine) => {
          const [schedule] = await engine.listSchedules()
          return schedule.paused
        }
        for (const engine of [a, b]) await know(engine)
        a.setSchedulePaused('s', true)
        await until(() => paused(b), 'the pause')
        const late = world.engine({ controlPlane: plane() })
        await know(late)
        assert.isFalse(await paused(late))
        await until(async () => {
          await world.time.advance(60_000)
          return paused(late)
        }, 'the repetition')
        b.setSchedulePaused('s', false)
        await until(async () => !(await paused(late)), 'the last word')
        await world.time.advance(180_000)
        assert.deepEqual(await Promise.all([a, b, late].map(paused)), [false, false, false])
      })

      test('a repetition that crosses the word against it changes nothing', async ({ assert }) => {
        const [a, b] = await two()
        for (const engine of [a, b]) {
          engine.register('w', '1', async () => 1)
          await engine.registerSchedules([{ key: 's', workflow: 'w', everyMs: 3_600_000 }])
        }
        const paused = async (engine: WorkflowEngine) => {
          const [schedule] = await engine.listSchedules()
          return schedule.paused
        }
        const told: string[] = []
        b.onCancel((runId) => void told.push(runId))
        a.setSchedulePaused('s', true)
        await until(() => paused(b), 'the pause')
        b.setSchedulePaused('s', false)
        const sender = plane()
        const late = { kind: 'schedulePaused', key: 's', paused: true, at: world.time.now }
        await sender.publishControl(late as ControlMessage)
        await sender.publishControl({ kind: 'cancel', runId: 'last' })
        await until(() => told.length > 0, 'the last message')
        assert.isFalse(await paused(b))
      })

      test('what is no message of an engine changes nothing', async ({ assert }) => {
        const [a, b] = await two()
        const events = world.eventsOf(b)
        const told: string[] = []
        b.onCancel((runId) => void told.push(runId))
        const sender = plane()
        for (const message of [
          { kind: 'cancel' },
          { kind: 'event' },
          { kind: 'event', event: { at: new Date() } },
          { kind: 'enqueued', runId: 7 },
          { kind: 'later' },
          { kind: 'cancel', runId: 'last' },
        ]) {
          await sender.publishControl(message as ControlMessage)
        }
        await until(() => told.length > 0, 'the last one')
        assert.deepEqual([told, events], [['last'], []])
        assert.equal(a.isDraining(), false)
      })
    })
  }
}

test.group('Control plane', () => {
  test('one that lacks members is refused', async ({ assert }) => {
    const { WorkflowEngine: Engine } = await import('../../src/engine/workflow_engine.ts')
    const { InMemoryStateStore } = await import('../../src/store/memory/memory_store.ts')
    const build = (controlPlane: unknown) =>
      new Engine({ store: new InMemoryStateStore(), controlPlane: controlPlane as ControlPlane })
    assert.throws(
      () => build({ onControl() {} }),
      /controlPlane must be a control plane; this one lacks publishControl/
    )
    assert.throws(() => build('redis'), /controlPlane must be a control plane/)
  })

  test('one that cannot publish is told of once, until it can', async ({ assert }) => {
    const { WorkflowEngine: Engine } = await import('../../src/engine/workflow_engine.ts')
    const { InMemoryStateStore } = await import('../../src/store/memory/memory_store.ts')
    let isDown = true
    let published = 0
    const controlPlane: ControlPlane = {
      onControl() {},
      async publishControl() {
        if (isDown) throw new Error('down')
        published += 1
      },
    }
    const errors: string[] = []
    const logger = { warn() {}, error: (message: string) => void errors.push(message) }
    const engine = new Engine({ store: new InMemoryStateStore(), controlPlane, logger })
    engine.register('w', '1', async () => 1)
    const run = async (id: string) => {
      await engine.start('w', null, id)
      await engine.waitForRun(id, { terminal: true })
    }
    await run('1')
    assert.deepEqual(errors, ['durable: other instances are not told what happens here'])
    isDown = false
    await run('2')
    await until(() => published > 0, 'a message')
    isDown = true
    await run('3')
    await until(() => errors.length > 1, 'the second report')
    assert.lengthOf(errors, 2)
  })
})
