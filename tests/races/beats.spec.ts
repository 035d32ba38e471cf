/*
 * Signs of life of dispatched steps, from a handler to the row of its step, over every transport.
 */
import { EventEmitter } from 'node:events'
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import { EventEmitterTransport } from '../../src/transport/event_emitter/event_emitter_transport.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import type { Transport } from '../../src/transport/ports.ts'
import { storesUnderTest, useWorld, type World } from '../helpers/engines.ts'

const WINDOW_MS = 30_000
/** Until the first beat of a step is written. */
const YOUNG_MS = 1_000
/** Between two writes of a step's beats, at least. */
const RHYTHM_MS = 10_000

const TRANSPORTS: Record<string, (world: World) => Transport> = {
  memory: ({ time }) => new InMemoryTransport({ clock: time.clock, timers: time }),
  eventEmitter: ({ time }) =>
    new EventEmitterTransport({
      emitter: new EventEmitter(),
      clock: time.clock,
      timers: time,
    }),
}

for (const kind of await storesUnderTest()) {
  test.group(`Beats | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    async function progressOf(runId: string) {
      const row = await world.store.getCheckpoint(runId, 0)
      return row?.heartbeatProgress
    }

    async function dispatched() {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', (ctx) => ctx.step('call', null))
      await engine.start('w', null, 'r')
      await world.held.task('call')
      await world.parked('r')
    }

    // Beats are kept by a member that a store may lack.
    if (kind.complete) {
      test('the first progress is written although the pickup was, a moment ago', async ({
        assert,
      }) => {
        await dispatched()
        await world.held.beat('r:0')
        await world.time.advance(YOUNG_MS)
        const picked = await world.store.getCheckpoint('r', 0)
        assert.equal(picked?.lastHeartbeatAt?.getTime(), world.time.now - YOUNG_MS)
        assert.isUndefined(await progressOf('r'))
        await world.time.advance(1)
        await world.held.beat('r:0', { done: 1 })
        await world.quiet()
        assert.deepEqual(await progressOf('r'), { done: 1 })
        // What comes after it keeps the rhythm.
        await world.held.beat('r:0', { done: 2 })
        await world.quiet()
        assert.deepEqual(await progressOf('r'), { done: 1 })
        await world.time.advance(RHYTHM_MS)
        await world.held.beat('r:0')
        await world.quiet()
        assert.deepEqual(await progressOf('r'), { done: 2 })
      }).tags(['@race-58', '@control-39'])

      test('progress that comes with the pickup is written with it', async ({ assert }) => {
        await dispatched()
        await world.held.beat('r:0')
        await world.held.beat('r:0', { done: 1 })
        await world.time.advance(YOUNG_MS)
        assert.deepEqual(await progressOf('r'), { done: 1 })
      }).tags(['@race-58', '@control-39'])
    }

    for (const [name, open] of Object.entries(TRANSPORTS)) {
      test(`over ${name} a step that beats outlives its window, and one that does not is given up`, async ({
        assert,
        cleanup,
      }) => {
        const transport = open(world.current)
        cleanup(() => transport.close?.())
        const engine = world.engine({ transport })
        const end = deferred<string>()
        const runs: string[] = []
        let beat = () => {}
        engine.handle('beats', (_, log) => {
          runs.push('beats')
          beat = () => log.heartbeat({ alive: true })
          return end.promise
        })
        engine.handle('silent', () => {
          runs.push('silent')
          return new Promise(() => {})
        })
        for (const step of ['beats', 'silent']) {
          engine.register(step, '1', (ctx) => ctx.step(step, null, { timeoutMs: WINDOW_MS }))
        }
        await engine.start('beats', null, 'alive')
        await world.reached('alive', 'running')
        await world.quiet()
        for (let i = 0; i < 4; i++) {
          await world.time.advance(WINDOW_MS / 2)
          beat()
          await world.quiet()
        }
        assert.equal(await world.status('alive'), 'running')
        if (kind.complete) assert.deepEqual(await progressOf('alive'), { alive: true })
        end.resolve('done')
        assert.equal(await world.output('alive'), 'done')

        await engine.start('silent', null, 'mute')
        await world.reached('mute', 'running')
        await world.quiet()
        await world.time.advance(WINDOW_MS)
        const { error } = await world.ended('mute')
        assert.equal(error?.code, 'remote_step_timeout')
        assert.deepEqual(runs, ['beats', 'silent'])
      }).tags(['@race-59', '@control-38'])
    }
  })
}
