/*
 * Liveness windows: a dispatched step with `timeoutMs` is awaited by its turn, and fails when nothing is
 * heard of it for that long. Whatever is heard, on whichever instance, counts; what is over stays over.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { RemoteStepTimeout } from '../../src/errors.ts'
import type { TurnCommit } from '../../src/store/ports/turn_commits.ts'
import type { Transport } from '../../src/transport/ports.ts'
import type { StepDispatchOpts } from '../../src/types/step.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const LEASE_MS = 30_000
const WINDOW_MS = 20_000

const [memory] = await storesUnderTest()

for (const kind of await storesUnderTest()) {
  test.group(`Liveness | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    function engineOf(opts: StepDispatchOpts = {}) {
      const engine = world.engine({ transport: 'held', leaseMs: LEASE_MS })
      engine.register('w', '1', (ctx) => ctx.step('call', null, { timeoutMs: WINDOW_MS, ...opts }))
      return engine
    }

    async function start(engine: WorkflowEngine, runId = 'r') {
      await engine.start('w', null, runId)
      await world.held.task('call')
      await world.quiet()
    }

    const codeOf = async (runId: string) => {
      const error = await world.errorOf(runId)
      return error?.code
    }

    const sent = () => world.held.sent.map(({ attempt }) => attempt)

    test('its turn stays alive under its lease, and takes the result', async ({ assert }) => {
      const engine = engineOf()
      await start(engine)
      assert.isTrue(await world.isHeldBy('r', engine))
      await world.time.advance(WINDOW_MS - 1)
      assert.equal(await world.status('r'), 'running')
      await world.held.complete('r:0', 'answer')
      assert.equal(await world.output('r'), 'answer')
      const { turns } = await world.run('r')
      assert.equal(turns, kind.complete ? 1 : turns)
    })

    test('silence for a window fails the step, with an error of its own', async ({ assert }) => {
      const engine = engineOf()
      let seen: unknown
      engine.register('w', '1', async (ctx) => {
        try {
          await ctx.step('call', null, { timeoutMs: WINDOW_MS })
        } catch (error) {
          seen = error
          throw error
        }
      })
      await start(engine)
      await world.time.advance(WINDOW_MS)
      const { error } = await world.ended('r')
      assert.equal(error?.code, 'remote_step_timeout')
      assert.instanceOf(seen, RemoteStepTimeout)
      assert.equal((seen as RemoteStepTimeout).stepId, 'r:0')
      assert.equal((seen as RemoteStepTimeout).timeoutMs, WINDOW_MS)
      const [row] = await world.rows('r')
      assert.deepEqual([row.status, row.attempts, row.timeoutMs], ['failed', 1, WINDOW_MS])
    })

    test('a replay sees the same error', async ({ assert }) => {
      const engine = engineOf()
      const seen: unknown[] = []
      engine.register('w', '1', async (ctx) => {
        await ctx.step('call', null, { timeoutMs: WINDOW_MS }).catch((error) => seen.push(error))
        await ctx.waitForSignal('go')
      })
      await start(engine)
      await world.time.advance(WINDOW_MS)
      await world.parked('r')
      await engine.signal('go', null)
      await world.ended('r')
      assert.lengthOf(seen, 2)
      for (const error of seen) {
        assert.instanceOf(error, RemoteStepTimeout)
        assert.equal((error as RemoteStepTimeout).timeoutMs, WINDOW_MS)
      }
    })

    test('every beat begins the window anew', async ({ assert }) => {
      const engine = engineOf()
      await start(engine)
      for (let i = 0; i < 3; i++) {
        await world.time.advance(WINDOW_MS - 1)
        await world.held.beat('r:0')
      }
      assert.equal(await world.status('r'), 'running')
      await world.time.advance(WINDOW_MS)
      const { error } = await world.ended('r')
      assert.equal(error?.code, 'remote_step_timeout')
    }).tags(['@control-37'])

    test('until the first beat the pickup window counts, from then on the other', async ({
      assert,
    }) => {
      const engine = engineOf({ pickupTimeoutMs: 5 * WINDOW_MS })
      await start(engine, 'slow')
      await world.time.advance(4 * WINDOW_MS)
      assert.equal(await world.status('slow'), 'running')
      await world.held.beat('slow:0')
      await world.time.advance(WINDOW_MS)
      assert.equal(await codeOf('slow'), 'remote_step_timeout')
      await engine.start('w', null, 'lost')
      await world.quiet()
      await world.time.advance(5 * WINDOW_MS)
      const lost = await world.errorOf('lost')
      assert.include(lost?.message, `within ${5 * WINDOW_MS}ms`)
    }).tags(['@race-57', '@control-37'])

    test('a beat that comes before its dispatch has returned counts', async ({ assert }) => {
      const port = world.held.connect()
      const transport: Transport = {
        ...port,
        dispatch: async (task) => {
          await port.dispatch(task)
          await world.held.beat(task)
        },
      }
      const engine = world.engine({ transport, leaseMs: LEASE_MS })
      const windows = { timeoutMs: WINDOW_MS, pickupTimeoutMs: 5 * WINDOW_MS }
      engine.register('w', '1', (ctx) => ctx.step('call', null, windows))
      await start(engine)
      await world.time.advance(WINDOW_MS)
      const { error } = await world.ended('r')
      assert.include(error?.message, `within ${WINDOW_MS}ms`)
    })

    test('a pickup window alone does nothing', async ({ assert }) => {
      const engine = engineOf({ timeoutMs: undefined, pickupTimeoutMs: 1 })
      engine.register('w', '1', (ctx) => ctx.step('call', null, { pickupTimeoutMs: 1 }))
      await start(engine)
      await world.parked('r')
      await world.time.advance(WINDOW_MS)
      await world.held.complete('r:0', 'answer')
      assert.equal(await world.output('r'), 'answer')
    })

    test('what is lost is sent again as often as its policy says, with its pauses', async ({
      assert,
    }) => {
      const engine = engineOf({ retries: 3, backoffMs: 5_000 })
      await start(engine)
      await world.time.advance(WINDOW_MS)
      assert.deepEqual(sent(), [1])
      const paused = await world.parked('r')
      assert.equal(paused.wakeAt, world.time.now + 5_000)
      await world.time.advance(5_000)
      void engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(sent(), [1, 2])
      assert.equal(await world.status('r'), 'running')
      await world.held.fail('r:0', 'no')
      await world.parked('r')
      await world.time.advance(5_000)
      void engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(sent(), [1, 2, 3])
      await world.held.complete('r:0', 'at last')
      assert.equal(await world.output('r'), 'at last')
    })

    test('without a pause the next attempt goes out in the same turn', async ({ assert }) => {
      const engine = engineOf({ retries: 2 })
      await start(engine)
      await world.time.advance(WINDOW_MS)
      assert.deepEqual(sent(), [1, 2])
      assert.isTrue(await world.isHeldBy('r', engine))
      await world.time.advance(WINDOW_MS)
      const { error } = await world.ended('r')
      assert.equal(error?.code, 'remote_step_timeout')
    })

    test('what an attempt that was given up fails with changes nothing', async ({ assert }) => {
      const engine = engineOf({ retries: 2 })
      await start(engine)
      const first = await world.held.task('call', 1)
      await world.time.advance(WINDOW_MS)
      await world.held.deliver({ ...first, status: 'failed', error: { message: 'late' } })
      await world.quiet()
      const [row] = await world.rows('r')
      assert.deepEqual([row.status, row.attempts], ['pending', 2])
      await world.held.complete(await world.held.task('call', 2), 'second')
      assert.equal(await world.output('r'), 'second')
    })

    test('a result that comes after the last attempt was given up changes nothing', async ({
      assert,
    }) => {
      const engine = engineOf()
      await start(engine)
      await world.time.advance(WINDOW_MS)
      await world.ended('r')
      await world.held.complete('r:0', 'late')
      const [row] = await world.rows('r')
      assert.deepEqual([row.status, row.output], ['failed', undefined])
      assert.equal(await world.status('r'), 'failed')
    })

    test('a result that another instance takes is seen within a second', async ({ assert }) => {
      const engine = engineOf()
      const other = engineOf()
      await start(engine)
      await world.held.complete('r:0', 'elsewhere', world.port(other))
      await world.quiet()
      assert.equal(await world.status('r'), 'running')
      await world.time.advance(1_000)
      assert.equal(await world.output('r'), 'elsewhere')
    })

    if (kind.complete) {
      test('a beat that another instance takes counts', async ({ assert }) => {
        const engine = engineOf()
        await start(engine)
        engineOf()
        await world.time.advance(WINDOW_MS - 5_000)
        // To the one that connected last; it is written down a second later.
        await world.held.beat('r:0')
        await world.time.advance(6_000)
        assert.equal(await world.status('r'), 'running')
        await world.time.advance(WINDOW_MS)
        const { error } = await world.ended('r')
        assert.equal(error?.code, 'remote_step_timeout')
      })
    }

    test('a result that meets the end of its window stands', async ({ assert }) => {
      const engine = engineOf()
      const other = engineOf()
      await start(engine)
      const gate = world.gate(engine)
      gate.once('getCheckpoint', async (proceed) => {
        const row = await proceed()
        await world.held.complete('r:0', 'just in time', world.port(other))
        return row
      })
      await world.time.advance(WINDOW_MS)
      assert.equal(await world.output('r'), 'just in time')
    })

    test('a cancel, by anybody, ends the turn that waits', async ({ assert }) => {
      const engine = engineOf()
      await start(engine)
      await engineOf().cancel('r')
      await world.time.advance(1_000)
      assert.equal(await world.status('r'), 'cancelled')
      await engine.drain(0)
      assert.equal(await world.status('r'), 'cancelled')
      await world.time.advance(WINDOW_MS)
      const [row] = await world.rows('r')
      assert.equal(row.status, 'pending')
    })

    test('a cancel with undos does not wait for it', async ({ assert }) => {
      const engine = engineOf()
      const undone: string[] = []
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('book', () => 1, { compensate: () => void undone.push('book') })
        await ctx.step('call', null, { timeoutMs: WINDOW_MS })
      })
      await start(engine)
      await engine.cancel('r', { compensate: true })
      await world.ended('r')
      assert.deepEqual(undone, ['book'])
      assert.equal(await world.status('r'), 'cancelled')
    })

    test('other branches go on meanwhile, and may end the run', async ({ assert }) => {
      const engine = engineOf()
      engine.register('w', '1', (ctx) =>
        Promise.race([
          ctx.step('call', null, { timeoutMs: WINDOW_MS }),
          ctx.waitForSignal('enough'),
        ])
      )
      await start(engine)
      await engine.signal('enough', 'signal')
      assert.equal(await world.output('r'), 'signal')
    })

    test('a deadline of another branch is met under the lease', async ({ assert }) => {
      const engine = engineOf()
      engine.register('w', '1', (ctx) =>
        Promise.race([ctx.step('call', null, { timeoutMs: WINDOW_MS }), ctx.sleep(3_000)])
      )
      await start(engine)
      await world.time.advance(3_000)
      await world.ended('r')
      assert.equal(await world.status('r'), 'completed')
    })

    test('a process that dies leaves the step to the next: what it was silent for counts', async ({
      assert,
    }) => {
      const engine = engineOf()
      await start(engine)
      await world.time.advance(WINDOW_MS / 2)
      await world.crash(engine)
      const next = engineOf()
      // The lease was renewed a moment ago.
      await world.time.advance(LEASE_MS)
      await next.recoverIncomplete()
      await world.quiet()
      assert.deepEqual(sent(), [1, 1])
      assert.isTrue(await world.isHeldBy('r', next))
      await world.held.complete('r:0', 'answer')
      assert.equal(await world.output('r'), 'answer')
    })

    if (kind.complete) {
      test('a step that is alive when its turn is lost is not sent again', async ({ assert }) => {
        const engine = engineOf()
        await start(engine)
        await world.crash(engine)
        const next = engineOf()
        await world.time.advance(LEASE_MS - 2_000)
        await world.held.beat('r:0')
        await world.time.advance(2_000)
        await next.recoverIncomplete()
        await world.parked('r')
        assert.deepEqual(sent(), [1])
        await world.held.complete('r:0', 'answer')
        assert.equal(await world.output('r'), 'answer')
      })
    }

    if (kind.complete) {
      test('a missed window is written once: a copy could end the attempt that follows', async ({
        assert,
      }) => {
        const engine = engineOf({ retries: 2 })
        await start(engine)
        let failures = 0
        const stop = world.gate(engine).around('commitTurn', async (proceed, [commit]) => {
          const { rows = [] } = commit as TurnCommit
          if (!rows.some(({ row }) => row.status === 'failed')) return proceed()
          failures += 1
          throw new Error('no answer')
        })
        await world.time.advance(WINDOW_MS)
        assert.equal(failures, 1)
        stop()
        await engine.recoverIncomplete()
        await world.quiet()
        assert.deepEqual(sent(), [1, 1])
        await world.held.complete('r:0', 'answer')
        assert.equal(await world.output('r'), 'answer')
      })
    }

    test('a drain does not wait for it: the run parks, and another process goes on', async ({
      assert,
    }) => {
      const engine = engineOf()
      await start(engine)
      await engine.drain(5_000)
      const run = await world.parked('r')
      assert.notProperty(run, 'lockedBy')
      assert.isAtMost(run.wakeAt ?? Infinity, world.time.now + WINDOW_MS)
      const next = engineOf()
      await world.held.complete('r:0', 'answer', world.port(next))
      assert.equal(await world.output('r'), 'answer')
    })

    test('nor for one that is sent while it drains', async ({ assert }) => {
      const engine = engineOf()
      engine.register('w', '1', async (ctx) => {
        await ctx.waitForSignal('go')
        await ctx.step('call', null, { timeoutMs: WINDOW_MS })
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      engine.beginDrain()
      await engine.signal('go', null)
      await world.held.task('call')
      await world.parked('r')
      assert.deepEqual(sent(), [1])
    })
  })
}

test.group('Liveness | in process', (group) => {
  const world = useWorld(group, memory)

  test('a handler that hangs is given up, though its process is alive', async ({ assert }) => {
    const engine = world.engine({ leaseMs: LEASE_MS })
    engine.handle('call', () => new Promise(() => {}))
    engine.register('w', '1', (ctx) => ctx.step('call', null, { timeoutMs: WINDOW_MS }))
    await engine.start('w', null, 'r')
    await world.quiet()
    await world.time.advance(WINDOW_MS)
    const error = await world.errorOf('r')
    assert.equal(error?.code, 'remote_step_timeout')
  })

  test('a window that is longer than a timer can be is waited for to its end', async ({
    assert,
  }) => {
    const { time } = world
    const timers = {
      after: (ms: number, fn: () => void) => time.after(Math.min(ms, WINDOW_MS / 4), fn),
      every: (ms: number, fn: () => void) => time.every(ms, fn),
    }
    const engine = world.engine({ leaseMs: LEASE_MS, timers })
    engine.handle('call', () => new Promise(() => {}))
    engine.register('w', '1', (ctx) => ctx.step('call', null, { timeoutMs: WINDOW_MS }))
    await engine.start('w', null, 'r')
    await world.quiet()
    await world.time.advance(WINDOW_MS - 1)
    assert.equal(await world.status('r'), 'running')
    await world.time.advance(1)
    const error = await world.errorOf('r')
    assert.equal(error?.code, 'remote_step_timeout')
  })

  test('a handler that beats is not', async ({ assert }) => {
    const engine = world.engine({ leaseMs: LEASE_MS })
    let end = () => {}
    let beat = () => {}
    engine.handle('call', (_, log) => {
      beat = () => log.heartbeat()
      return new Promise<void>((resolve) => (end = resolve))
    })
    engine.register('w', '1', (ctx) => ctx.step('call', null, { timeoutMs: WINDOW_MS }))
    await engine.start('w', null, 'r')
    await world.quiet()
    for (let i = 0; i < 4; i++) {
      await world.time.advance(WINDOW_MS - 6_000)
      beat()
    }
    assert.equal(await world.status('r'), 'running')
    end()
    await world.ended('r')
    assert.equal(await world.status('r'), 'completed')
  })
})
