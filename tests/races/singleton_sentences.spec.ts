/*
 * What the published page on singleton workflows promises, where tests/races/singletons.spec.ts does not
 * say it already. At the end: every sentence, and the test that holds it.
 */
import { readFileSync } from 'node:fs'
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { SingletonQueueFullError } from '../../src/errors.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { SINGLETON_ADMITTED } from '../../src/store/ports/singleton_rules.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { SingletonConfig } from '../../src/types/workflow.ts'
import { storesUnderTest, until, useWorld, withoutMembers } from '../helpers/engines.ts'
import { SENTENCES } from './singleton_sentences.ts'

const KEY = 'singleton:store:A'
const singleton = { key: () => 'store:A' }
const kinds = await storesUnderTest({ fallbacks: false })

for (const kind of kinds.filter(({ name }) => ['in memory', 'Lucid on postgres'].includes(name))) {
  test.group(`Singleton sentences | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    const entered: string[] = []
    group.each.setup(() => void entered.splice(0))

    /** Inside until it is told to leave. */
    function register(engine: WorkflowEngine, config: Partial<SingletonConfig> = {}): void {
      const body = async (ctx: WorkflowCtx) => {
        entered.push(ctx.runId)
        await ctx.waitForSignal(`leave:${ctx.runId}`)
      }
      engine.register('sync', '1', body, { singleton: { ...singleton, ...config } })
    }

    async function start(engine: WorkflowEngine, ...ids: string[]): Promise<void> {
      for (const id of ids) {
        world.time.jump(1)
        await engine.start('sync', null, id)
        await world.quiet()
      }
    }

    async function holders(): Promise<string[]> {
      const runs = await world.store.listRuns({ tag: SINGLETON_ADMITTED, oldestFirst: true })
      return runs.map(({ id }) => id)
    }

    test('a run is tagged with its key when it is started, before anything of it executes', async ({
      assert,
    }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      register(engine)
      const { status } = await engine.start('sync', null, 'r')
      assert.equal(status, 'pending')
      const { tags } = await world.run('r')
      assert.include(tags, KEY)
      assert.notInclude(tags, SINGLETON_ADMITTED)
    })

    test('without maxQueueDepth a start is never refused, however many are there', async ({
      assert,
    }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      register(engine)
      for (let index = 0; index < 30; index++) await engine.start('sync', null, `r${index}`)
      assert.equal(await engine.countRuns({ tag: KEY }), 30)
    })

    test('the gate asks a run that is marked running, once, and lets its lease go when it has to wait', async ({
      assert,
    }) => {
      const engine = world.engine()
      register(engine)
      const asked: [id: string, status: string, held: boolean][] = []
      world.gate(engine).around('tryAdmitSingleton', async (proceed, [claim]) => {
        const { runId } = claim as { runId: string }
        const { status, lockedBy } = await world.run(runId)
        asked.push([runId, status, lockedBy === engine.instanceId])
        return proceed()
      })
      await start(engine, 'a', 'b')
      // The look at the run above is none of the calls that a quiet world has none of.
      await until(() => asked.length === 2, 'both to be asked')
      await world.quiet()
      assert.deepEqual(asked, [
        ['a', 'running', true],
        ['b', 'running', true],
      ])
      assert.deepEqual(entered, ['a'])
      const { status, lockedBy } = await world.run('b')
      assert.equal(status, 'suspended')
      assert.isUndefined(lockedBy)
    })

    test('retries of runs that wait are spread over half a second around a second', async ({
      assert,
    }) => {
      const engine = world.engine()
      register(engine)
      await start(engine, 'holder')
      const waits: number[] = []
      for (let index = 0; index < 40; index++) {
        await start(engine, `w${index}`)
        const { wakeAt } = await world.run(`w${index}`)
        waits.push(wakeAt! - world.time.now)
      }
      assert.isAtLeast(Math.min(...waits), 750)
      assert.isAtMost(Math.max(...waits), 1250)
      assert.isAbove(new Set(waits).size, 20)
    }).tags(['@control-18'])

    test('a start in the same millisecond whose id sorts first takes no slot from a holder', async ({
      assert,
    }) => {
      const engine = world.engine()
      register(engine)
      for (const id of ['z', 'a']) {
        await engine.start('sync', null, id)
        await world.quiet()
      }
      const [z, a] = [await world.run('z'), await world.run('a')]
      assert.deepEqual(z.createdAt, a.createdAt)
      await engine.resume('z')
      assert.deepEqual(await holders(), ['z'])
      assert.deepEqual(new Set(entered), new Set(['z']))
    }).tags(['@control-14'])

    test('as many waiters are woken as may be inside, and a holder that sleeps is left alone', async ({
      assert,
    }) => {
      const engine = world.engine()
      const body = async (ctx: WorkflowCtx) => {
        entered.push(ctx.runId)
        if (ctx.runId === 'sleeper') await ctx.sleep('1h')
        else await ctx.waitForSignal(`leave:${ctx.runId}`)
      }
      engine.register('sync', '1', body, { singleton: { ...singleton, limit: 2 } })
      await start(engine, 'sleeper', 'a', 'b', 'c', 'd')
      const before = await world.run('sleeper')
      const woken: string[] = []
      world.gate(engine).around('tryAdmitSingleton', (proceed, [claim]) => {
        woken.push((claim as { runId: string }).runId)
        return proceed()
      })
      await engine.signal('leave:a', null)
      await world.quiet()
      assert.sameMembers(woken, ['b', 'c'])
      assert.deepEqual(await holders(), ['sleeper', 'b'])
      const { wakeAt, turns } = await world.run('sleeper')
      assert.deepEqual([wakeAt, turns], [before.wakeAt, before.turns])
    })

    test('the death of a holder frees its slot, and the waiters learn of it by their retry', async ({
      assert,
    }) => {
      const crashing = world.engine()
      const engine = world.engine({ maxRecoveryAttempts: 0 })
      crashing.register('sync', '1', (ctx) => ctx.localStep('x', () => new Promise(() => {})), {
        singleton,
      })
      register(engine)
      await crashing.start('sync', null, 'holder')
      await until(async () => {
        const [id] = await holders()
        return id === 'holder'
      }, 'the holder to be inside')
      await world.crash(crashing)
      await start(engine, 'waiter')
      await world.time.advance(31_000)
      await engine.recoverIncomplete()
      await world.quiet()
      assert.equal(await world.status('holder'), 'dead')
      assert.isEmpty(await holders())
      await engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(await holders(), ['waiter'])
    })

    test('runs of one key in two namespaces share the slot; a tenant in the key parts them', async ({
      assert,
    }) => {
      const [acme, globex] = [
        world.engine({ namespace: 'acme' }),
        world.engine({ namespace: 'globex' }),
      ]
      for (const engine of [acme, globex]) {
        register(engine)
        const key = () => `${engine.namespace}:store:A`
        engine.register('own', '1', (ctx) => ctx.waitForSignal('never' + ctx.runId), {
          singleton: { key },
        })
      }
      await start(acme, 'one')
      await start(globex, 'two')
      assert.deepEqual(entered, ['one'])
      await acme.start('own', null, 'own one')
      await globex.start('own', null, 'own two')
      await world.quiet()
      assert.sameMembers(await holders(), ['one', 'own one', 'own two'])
    })

    test('signalWithStart does not get past the gate: the run waits, its signal is kept', async ({
      assert,
    }) => {
      const engine = world.engine()
      register(engine, { maxQueueDepth: 1 })
      await start(engine, 'holder')
      const signal = { token: 'leave:late', payload: null }
      await engine.signalWithStart('sync', null, 'late', signal)
      await world.quiet()
      assert.equal(await world.status('late'), 'suspended')
      assert.deepEqual(entered, ['holder'])
      const full = await engine
        .signalWithStart('sync', null, 'more', { token: 'leave:more' })
        .catch((error: unknown) => error)
      assert.instanceOf(full, SingletonQueueFullError)
      assert.isNull(await engine.getRun('more'))
      await engine.signal('leave:holder', null)
      await world.ended('late')
      assert.deepEqual(new Set(entered), new Set(['holder', 'late']))
    })

    test('a full queue refuses what an event and a schedule start, and both say so', async ({
      assert,
    }) => {
      const engine = world.engine()
      const options = { singleton: { ...singleton, maxQueueDepth: 0 }, onEvent: ['stock changed'] }
      engine.register('sync', '1', (ctx) => ctx.waitForSignal(`leave:${ctx.runId}`), options)
      await start(engine, 'holder')
      await engine.publishEvent('stock changed', null, { id: 'e' })
      await world.quiet()
      assert.isNull(await engine.getRun('evt:e:sync'))
      assert.include(world.reports.map(String).join(), 'SingletonQueueFullError')
      const schedules = [{ key: 'hourly', workflow: 'sync', everyMs: 3_600_000 }]
      const { started, failures } = await engine.fireSchedules({ schedules })
      assert.isEmpty(started)
      assert.instanceOf(failures[0].error, SingletonQueueFullError)
      assert.equal(await engine.countRuns({ workflow: 'sync' }), 1)
    })

    test('runs of a schedule with a constant key follow one another', async ({ assert }) => {
      const engine = world.engine()
      register(engine)
      const schedules = [{ key: 'often', workflow: 'sync', everyMs: 60_000 }]
      const ids: string[] = []
      for (let window = 0; window < 2; window++) {
        await world.time.advance(60_000)
        const { started } = await engine.fireSchedules({ schedules })
        ids.push(...started.map(({ runId }) => runId))
        await world.quiet()
      }
      assert.lengthOf(ids, 2)
      assert.deepEqual(entered, [ids[0]])
      await engine.signal(`leave:${ids[0]}`, null)
      await world.quiet()
      assert.deepEqual(await holders(), [ids[1]])
    })
  })
}

test.group('Singleton sentences', (group) => {
  const [memory] = kinds
  const world = useWorld(group, memory)

  test('an engine without a logger warns on the console, once, naming the missing member', async ({
    assert,
  }) => {
    const store = withoutMembers(world.store.base, ['tryAdmitSingleton'])
    const warnings: string[] = []
    const { warn } = console
    console.warn = (message: string) => void warnings.push(message)
    try {
      const engine = world.engine({ store, logger: undefined })
      engine.register('sync', '1', (ctx) => ctx.waitForSignal(ctx.runId), { singleton })
      for (const id of ['a', 'b']) await engine.start('sync', null, id)
      await world.quiet()
    } finally {
      console.warn = warn
    }
    assert.lengthOf(warnings, 1)
    assert.include(warnings[0], 'StateStore.tryAdmitSingleton')
  })

  test('the slot is a tag: no table and no column is of singletons', ({ assert }) => {
    assert.isFunction(LucidStateStore)
    const tables = readFileSync('src/store/lucid/schema/tables.ts', 'utf8')
    assert.notMatch(tables, /singleton|slot/i)
  })

  for (const { sentence, file, title } of SENTENCES) {
    test(`"${sentence}" is held by a test`, ({ assert }) => {
      assert.include(readFileSync(file, 'utf8'), `'${title}'`, file)
    })
  }
})
