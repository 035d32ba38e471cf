/*
 * Singleton workflows: at most `limit` runs of a key inside at once, oldest first, whoever picks them up
 * and whatever dies. Each test names the sentence of the contract that it holds.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { SingletonQueueFullError } from '../../src/errors.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import type { RunQuery } from '../../src/types/query.ts'
import type { WorkflowRun } from '../../src/types/run.ts'
import type { SingletonConfig } from '../../src/types/workflow.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'

const LEASE_MS = 30_000
const RETRY_MS = 1_250
const ADMITTED = 'durable:singleton:admitted'
const key = (input: unknown) => `store:${(input as { store: string }).store}`

/** Who is inside, who was, and the most at once. */
class Ledger {
  readonly inside = new Set<string>()
  readonly order: string[] = []
  most = 0

  enter(runId: string): void {
    this.inside.add(runId)
    this.order.push(runId)
    this.most = Math.max(this.most, this.inside.size)
  }
}

/** A workflow that is inside until it is told to leave, by signal. */
function register(engine: WorkflowEngine, ledger: Ledger, config: Partial<SingletonConfig> = {}) {
  const body = async (ctx: Parameters<Parameters<WorkflowEngine['register']>[2]>[0]) => {
    await ctx.localStep('enter', () => ledger.enter(ctx.runId))
    await ctx.waitForSignal(`leave:${ctx.runId}`)
    await ctx.localStep('leave', () => void ledger.inside.delete(ctx.runId))
  }
  engine.register('sync', '1', body, { singleton: { key, ...config } })
}

const A = { store: 'A' }
const B = { store: 'B' }

for (const kind of await storesUnderTest()) {
  test.group(`Singletons | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    const parked = (...ids: string[]) => Promise.all(ids.map((id) => world.parked(id)))

    async function tick(engine: WorkflowEngine, ms = RETRY_MS) {
      await world.time.advance(ms)
      await engine.resumeDueTimers()
      await world.quiet()
    }

    async function start(engine: WorkflowEngine, id: string, input: object) {
      // Distinct ages, so that the order of creation is told.
      world.time.jump(1)
      await engine.start('sync', input, id)
      await world.quiet()
    }

    test('runs of one key never overlap; another key has its own slot', async ({ assert }) => {
      const engine = world.engine()
      const ledger = new Ledger()
      register(engine, ledger)
      for (const [id, input] of [
        ['run-1', A],
        ['run-2', A],
        ['run-3', B],
      ] as const) {
        await start(engine, id, input)
      }
      await parked('run-1', 'run-2', 'run-3')
      assert.sameMembers([...ledger.inside], ['run-1', 'run-3'])
      const gated = await world.run('run-2')
      assert.include(gated.tags, 'singleton:store:A')
      assert.notInclude(gated.tags, ADMITTED)
      assert.notProperty(gated, 'lockedBy')
      const wait = gated.wakeAt! - world.time.now
      assert.isAtLeast(wait, 700)
      assert.isAtMost(wait, 1_250)
    })

    if (kind.complete) {
      test('a holder keeps its slot while it waits, and is confirmed without a claim', async ({
        assert,
      }) => {
        const engine = world.engine()
        const ledger = new Ledger()
        register(engine, ledger)
        await start(engine, 'a', A)
        await start(engine, 'b', A)
        const claims: unknown[] = []
        world.gate(engine).around('tryAdmitSingleton', (proceed, [claim]) => {
          claims.push((claim as { runId: string }).runId)
          return proceed()
        })
        const { tags } = await world.run('a')
        assert.include(tags, ADMITTED)
        for (let i = 0; i < 3; i++) await tick(engine)
        assert.sameMembers([...ledger.inside], ['a'])
        await engine.resume('a')
        assert.deepEqual(new Set(claims), new Set(['b']))
      }).tags(['@control-16'])
    }

    test('the end of a holder wakes the oldest waiter at once, and that one only', async ({
      assert,
    }) => {
      const [engine, other] = [world.engine(), world.engine()]
      const ledger = new Ledger()
      for (const each of [engine, other]) register(each, ledger)
      for (const id of ['c', 'b', 'a']) await start(engine, id, A)
      await other.signal('leave:c', null)
      await world.quiet()
      assert.equal(await world.status('c'), 'completed')
      assert.deepEqual([...ledger.inside], ['b'])
      await engine.signal('leave:b', null)
      await world.quiet()
      assert.deepEqual(ledger.order, ['c', 'b', 'a'])
      assert.equal(ledger.most, 1)
      const { tags = [] } = await world.run('c')
      assert.deepEqual(
        tags.filter((tag) => tag.startsWith('durable:')),
        []
      )
    })

    test('a waiter that is being refused while the slot comes free asks again', async ({
      assert,
    }) => {
      const engine = world.engine()
      const ledger = new Ledger()
      register(engine, ledger)
      await start(engine, 'a', A)
      await start(engine, 'b', A)
      // As it stands for others until its refusal, decided before the end of the holder, is written.
      const claimed = {
        status: 'running',
        lockedBy: 'other',
        lockedUntil: world.time.now + LEASE_MS,
      }
      await world.store.updateRun('b', claimed as Partial<WorkflowRun>)
      const looked: unknown[] = []
      world.gate(engine).around('listRuns', (proceed, [query]) => {
        const { oldestFirst, status } = query as RunQuery
        if (oldestFirst) looked.push(status)
        return proceed()
      })
      await engine.signal('leave:a', null)
      await world.quiet()
      const { wakeRequestedAt } = await world.run('b')
      assert.equal(wakeRequestedAt, world.time.now)
      // The other way round it would be missed between the two looks: it parks next.
      if (kind.complete) assert.deepEqual(looked, ['running', 'suspended'])
    })

    test('a cancelled holder leaves its slot; a cancelled waiter is not inside', async ({
      assert,
    }) => {
      const engine = world.engine()
      const ledger = new Ledger()
      register(engine, ledger)
      for (const id of ['a', 'b', 'c', 'd']) await start(engine, id, A)
      await engine.cancel('b')
      await engine.cancel('c', { compensate: true })
      await world.quiet()
      assert.equal(await world.status('c'), 'cancelled')
      ledger.inside.delete('a')
      await engine.cancel('a')
      await world.quiet()
      assert.deepEqual(ledger.order, ['a', 'd'])
      assert.equal(ledger.most, 1)
    }).tags(['@control-17'])

    if (kind.complete) {
      test('a waiter whose wake was lost is in by its retry', async ({ assert }) => {
        const [doomed, living] = [world.engine(), world.engine()]
        const ledger = new Ledger()
        for (const engine of [doomed, living]) register(engine, ledger)
        await start(doomed, 'a', A)
        await start(doomed, 'b', A)
        world.gate(doomed).around('listRuns', async (proceed, [query]) => {
          if ((query as RunQuery).oldestFirst) await world.crash(doomed)
          return proceed()
        })
        void doomed.signal('leave:a', null)
        await until(async () => (await world.status('a')) === 'completed', 'the end of the holder')
        await world.quiet()
        assert.deepEqual(ledger.order, ['a'])
        await tick(living)
        assert.deepEqual(ledger.order, ['a', 'b'])
      }).tags(['@control-11'])

      test('a holder whose process died keeps its slot until recovery drives it again', async ({
        assert,
      }) => {
        const [doomed, living] = [world.engine(), world.engine()]
        const ledger = new Ledger()
        const begun = deferred<void>()
        for (const engine of [doomed, living]) {
          engine.register(
            'sync',
            '1',
            async (ctx) => {
              await ctx.localStep('work', () => {
                ledger.enter(ctx.runId)
                begun.resolve()
                return engine === doomed ? new Promise(() => {}) : undefined
              })
            },
            { singleton: { key } }
          )
        }
        void doomed.start('sync', A, 'a')
        await begun.promise
        await world.crash(doomed)
        await start(living, 'b', A)
        world.time.jump(LEASE_MS + 1)
        await tick(living)
        assert.deepEqual(ledger.order, ['a'], 'nobody enters while the slot is held')
        await living.recoverIncomplete()
        await world.quiet()
        assert.deepEqual(ledger.order.slice(0, 2), ['a', 'a'])
        await tick(living)
        assert.equal(await world.status('b'), 'completed')
      }).tags(['@control-16'])

      test('an older run that is picked up after a younger one goes first', async ({ assert }) => {
        const [starter, worker] = [world.engine(), world.engine()]
        const ledger = new Ledger()
        for (const engine of [starter, worker]) register(engine, ledger)
        starter.beginDrain()
        await start(starter, 'older', A)
        await start(starter, 'younger', A)
        assert.equal(await worker.resume('younger').then(({ status }) => status), 'suspended')
        assert.deepEqual(ledger.order, [])
        await worker.resume('older')
        assert.deepEqual(ledger.order, ['older'])
      }).tags(['@control-13'])

      test('claims at the same moment admit no more than the limit', async ({ assert }) => {
        const starter = world.engine()
        const engines = [0, 1, 2].map(() => world.engine())
        const ledger = new Ledger()
        for (const engine of [starter, ...engines]) register(engine, ledger, { limit: 2 })
        starter.beginDrain()
        const ids = Array.from({ length: 9 }, (_, i) => `r${i}`)
        for (const id of ids) await start(starter, id, A)
        await Promise.all(ids.map((id, i) => engines[i % 3].resume(id)))
        await world.quiet()
        for (let left = 0; left < ids.length; left++) {
          for (const engine of engines) await tick(engine)
          assert.isAtMost(ledger.inside.size, 2)
          const [first] = ledger.inside
          assert.isDefined(first, `somebody is inside after ${left} have left`)
          await engines[left % 3].signal(`leave:${first}`, null)
          await world.quiet()
        }
        assert.equal(ledger.most, 2)
        // The first two enter in the same moment.
        assert.sameMembers(ledger.order.slice(0, 2), ids.slice(0, 2))
        assert.deepEqual(ledger.order.slice(2), ids.slice(2))
      })
        .tags(['@control-12'])
        .timeout(30_000)

      test('a cancel while the claim is in flight is not undone by the gate', async ({
        assert,
      }) => {
        const [engine, operator] = [world.engine(), world.engine()]
        const ledger = new Ledger()
        for (const each of [engine, operator]) register(each, ledger)
        await start(engine, 'a', A)
        world.gate(engine).once('tryAdmitSingleton', async (proceed) => {
          await operator.cancel('b')
          return proceed()
        })
        await start(engine, 'b', A)
        assert.equal(await world.status('b'), 'cancelled')
        assert.deepEqual(ledger.order, ['a'])
      }).tags(['@control-15'])
    }

    test('news for a run at the gate is not lost', async ({ assert }) => {
      const engine = world.engine()
      const ledger = new Ledger()
      register(engine, ledger)
      await start(engine, 'a', A)
      await engine.signalWithStart('sync', A, 'b', { token: 'leave:b' })
      await world.quiet()
      assert.deepEqual(ledger.order, ['a'])
      await engine.signal('leave:a', null)
      await world.quiet()
      await tick(engine)
      assert.equal(await world.status('b'), 'completed')
    })

    test('a full queue refuses a start and leaves no trace; starting an id again is never refused', async ({
      assert,
    }) => {
      const engine = world.engine()
      const ledger = new Ledger()
      register(engine, ledger, { maxQueueDepth: 1 })
      await start(engine, 'a', A)
      await start(engine, 'b', A)
      const refused = await engine.start('sync', A, 'c').catch((error: unknown) => error)
      assert.instanceOf(refused, SingletonQueueFullError)
      assert.deepInclude(refused, { workflow: 'sync', key: 'store:A', maxQueueDepth: 1 })
      assert.isNull(await engine.getRun('c'))
      assert.deepInclude(await engine.start('sync', A, 'a'), { runId: 'a' })
      await engine.signal('leave:a', null)
      await world.quiet()
      await start(engine, 'c', A)
      await parked('c')
    })

    test('a child that finds the queue full is a failed child', async ({ assert }) => {
      const engine = world.engine()
      const ledger = new Ledger()
      register(engine, ledger, { maxQueueDepth: 0 })
      engine.register('parent', '1', async (ctx) => {
        try {
          await ctx.child('sync', A)
        } catch (error) {
          return (error as { code?: string }).code
        }
      })
      await start(engine, 'a', A)
      await engine.start('parent', null, 'p')
      assert.equal(await world.output('p'), 'singleton_queue_full')
    }).tags(['@control-24'])

    test('a continuation queues behind those who came before it', async ({ assert }) => {
      const engine = world.engine()
      const order: string[] = []
      engine.register(
        'loop',
        '1',
        async (ctx, { left }: { left: number }) => {
          await ctx.localStep('enter', () => void order.push(ctx.runId))
          await ctx.waitForSignal(`go:${ctx.runId}`)
          if (left > 0) await ctx.continueAsNew({ left: left - 1 })
        },
        { singleton: { key: () => 'k', maxQueueDepth: 1 } }
      )
      await engine.start('loop', { left: 1 }, 'a')
      await world.quiet()
      world.time.jump(1)
      await engine.start('loop', { left: 0 }, 'b')
      await world.quiet()
      world.time.jump(1)
      await engine.signal('go:a', null)
      await world.quiet()
      await tick(engine)
      assert.deepEqual(order.slice(0, 2), ['a', 'b'])
      await engine.signal('go:b', null)
      await world.quiet()
      await tick(engine)
      assert.deepEqual(order, ['a', 'b', 'a~1'])
    })

    if (kind.complete) {
      test('a requeued run competes again, by its old age', async ({ assert }) => {
        const engine = world.engine()
        const order: string[] = []
        let failing = true
        engine.register(
          'sync',
          '1',
          async (ctx) => {
            await ctx.localStep('work', () => {
              order.push(ctx.runId)
              if (ctx.runId === 'a' && failing) throw new Error('no')
            })
            await ctx.waitForSignal(`leave:${ctx.runId}`)
          },
          { singleton: { key } }
        )
        for (const id of ['a', 'b', 'c']) await start(engine, id, A)
        assert.equal(await world.status('a'), 'failed')
        failing = false
        await engine.requeue('a')
        await world.quiet()
        assert.deepEqual(order, ['a', 'b'])
        await engine.signal('leave:b', null)
        await world.quiet()
        await tick(engine)
        assert.deepEqual(order, ['a', 'b', 'a'])
      })
    }

    test('the fallback warns once an engine, and names what is missing', async ({ assert }) => {
      const warnings: string[] = []
      const logger = { warn: (message: string) => void warnings.push(message), error: () => {} }
      const engine = world.engine({ logger })
      register(engine, new Ledger())
      for (const id of ['a', 'b', 'c']) await start(engine, id, A)
      const about = warnings.filter((message) => message.includes('StateStore.tryAdmitSingleton'))
      assert.lengthOf(about, kind.complete ? 0 : 1)
    })
  })
}
