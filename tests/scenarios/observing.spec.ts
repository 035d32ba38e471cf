/*
 * What listeners, interceptors and steps get to see, and what they cannot break.
 */
import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import type { NestedWorkflowCallError } from '../../src/errors.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { currentStep } from '../../src/transport/step_logger.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Observing | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('the events of a run, in order, with what each carries', async ({ assert }) => {
      const engine = world.engine({ transport: 'held', namespace: 'blue' })
      const events = world.eventsOf(engine)
      engine.register('w', '1', async (ctx) => {
        const a = await ctx.localStep('a', () => 'A')
        const b = await ctx.step('b', 1)
        return [a, b]
      })
      await engine.start('w', null, 'r')
      const task = await world.held.task('b')
      await world.parked('r')
      world.time.jump(5000)
      await world.held.deliver({
        runId: 'r',
        seq: 1,
        stepId: task.stepId,
        status: 'completed',
        output: 'B',
        startedAt: world.time.now - 3000,
      })
      await world.ended('r')
      // The end is told after it is written.
      await world.quiet()
      const at = new Date(world.time.now)
      const early = new Date(world.time.now - 5000)
      const step = { runId: 'r', workflow: 'w' }
      const run = { runId: 'r', workflow: 'w', namespace: 'blue' }
      assert.deepEqual(events, [
        { type: 'run.started', ...run, at: early },
        { type: 'step.started', ...step, seq: 0, name: 'a', kind: 'local', at: early },
        { type: 'step.completed', ...step, seq: 0, name: 'a', kind: 'local', output: 'A', durationMs: 0, at: early }, // prettier-ignore
        { type: 'step.started', ...step, seq: 1, name: 'b', kind: 'remote', at: early },
        { type: 'run.suspended', ...run, at: early },
        { type: 'step.completed', ...step, seq: 1, name: 'b', kind: 'remote', output: 'B', durationMs: 3000, queueMs: 2000, at }, // prettier-ignore
        { type: 'run.completed', ...run, output: ['A', 'B'], at },
      ])
    })

    test('a run starts once, however many turns and crashes it takes', async ({ assert }) => {
      const engines = [world.engine(), world.engine()]
      const started: string[] = []
      for (const engine of engines) {
        engine.subscribe(({ type, runId }) => {
          if (type === 'run.started') started.push(runId)
        })
        engine.register('w', '1', async (ctx) => {
          for (const token of ['a', 'b']) await ctx.waitForSignal(token)
        })
      }
      await engines[0].start('w', null, 'r')
      await world.parked('r')
      await engines[1].signal('a')
      await world.parked('r')
      await engines[0].requeue('r')
      await world.parked('r')
      await engines[0].signal('b')
      await world.ended('r')
      assert.deepEqual(started, ['r'])
    })

    test('every failed attempt is told, and the failure of the run', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      const events = world.eventsOf(engine)
      engine.register('w', '1', async (ctx) => {
        await ctx.step('remote', 1, { retries: 2 }).catch(() => {})
        await ctx.localStep('local', () => Promise.reject(new Error('no')), { retries: 2 })
      })
      await engine.start('w', null, 'r')
      for (let n = 1; n <= 2; n++) {
        await world.held.fail(await world.held.task('remote', n), `remote ${n}`)
      }
      await world.reached('r', 'running', 'failed')
      await world.quiet()
      await world.time.advance(0)
      await world.ended('r')
      const failures = events.filter((event) => event.type.endsWith('failed'))
      assert.deepEqual(
        failures.map((event) => [event.type, event.name, event.error?.message]),
        [
          ['step.failed', 'remote', 'remote 1'],
          ['step.failed', 'remote', 'remote 2'],
          ['step.failed', 'local', 'no'],
          ['step.failed', 'local', 'no'],
          ['run.failed', undefined, 'no'],
        ]
      )
    })

    test('a local step is timed from its beginning', async ({ assert }) => {
      const engine = world.engine()
      const events = world.eventsOf(engine)
      const gate = deferred<void>()
      engine.register('w', '1', async (ctx) => ctx.localStep('slow', () => gate.promise))
      await engine.start('w', null, 'r')
      await world.reached('r', 'running')
      await world.quiet()
      world.time.jump(1234)
      gate.resolve()
      await world.ended('r')
      assert.deepInclude(
        events.find((event) => event.type === 'step.completed')!,
        {
          durationMs: 1234,
        }
      )
      const row = await world.store.getCheckpoint('r', 0)
      assert.equal(row!.finishedAt.getTime() - row!.startedAt.getTime(), 1234)
    })

    test('a listener that throws, rejects or leaves disturbs nobody', async ({ assert }) => {
      const engine = world.engine()
      const heard: string[] = []
      engine.register('w', '1', async (ctx) => ctx.localStep('a', () => 'done'))
      engine.subscribe(() => {
        throw new Error('listener')
      })
      engine.subscribe((async () => Promise.reject(new Error('async listener'))) as never)
      const listener = ({ type }: { type: string }) => void heard.push(type)
      const stop = engine.subscribe(listener)
      const stopAgain = engine.subscribe(listener)
      const once = engine.subscribe(() => {
        heard.push('once')
        once()
      })
      stop()
      stop()
      await engine.start('w', null, 'r')
      assert.equal(await world.output('r'), 'done')
      await world.quiet()
      assert.deepEqual(heard, [
        'run.started',
        'once',
        'step.started',
        'step.completed',
        'run.completed',
      ])
      stopAgain()
      await engine.start('w', null, 'r2')
      await world.ended('r2')
      await world.quiet()
      assert.lengthOf(heard, 5)
      assert.isAtLeast(world.reports.length, 4)
    }).tags(['@control-52'])

    test('interceptors wrap each real attempt, the first registered outermost, never a replay', async ({
      assert,
    }) => {
      const engine = world.engine()
      const log: string[] = []
      const around = (name: string) =>
        engine.use(async ({ stepName, attempt, runId, workflow, seq }, next) => {
          log.push(`${name}> ${workflow}/${runId}/${seq} ${stepName} ${attempt}`)
          const value = await next()
          log.push(`<${name}`)
          return value
        })
      around('A')
      const removeB = around('B')
      let tries = 0
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep(
          'flaky',
          () => {
            tries += 1
            if (tries === 1) throw new Error('again')
          },
          { retries: 2 }
        )
        await ctx.waitForSignal('go')
        await ctx.sideEffect(() => 1)
      })
      await engine.start('w', null, 'r')
      await world.quiet()
      await world.time.advance(0)
      await world.parked('r')
      assert.deepEqual(log, [
        'A> w/r/0 flaky 1',
        'B> w/r/0 flaky 1',
        'A> w/r/0 flaky 2',
        'B> w/r/0 flaky 2',
        '<B',
        '<A',
      ])
      removeB()
      log.length = 0
      await engine.signal('go')
      await world.ended('r')
      assert.deepEqual(log, ['A> w/r/2 sideEffect 1', '<A'])
    })

    test('an interceptor may change a result, refuse an attempt, and is retried like the body', async ({
      assert,
    }) => {
      const engine = world.engine()
      let refusals = 0
      let bodies = 0
      engine.use(async ({ stepName }, next) => {
        if (stepName === 'refused' && refusals++ < 2) throw new Error('refused')
        const value = await next()
        return stepName === 'changed' ? `${String(value)} and more` : value
      })
      engine.register('w', '1', async (ctx) => [
        await ctx.localStep('changed', () => 'value'),
        await ctx.localStep('refused', () => ++bodies, { retries: 3 }),
      ])
      await engine.start('w', null, 'r')
      await world.quiet()
      for (let i = 0; i < 3; i++) await world.time.advance(0)
      assert.deepEqual(await world.output('r'), ['value and more', 1])
      const [changed] = await world.rows('r')
      assert.equal(changed.output, 'value and more')
    })

    const NESTED: Record<
      string,
      (ctx: WorkflowCtx, call: () => Promise<unknown>) => Promise<unknown>
    > = {
      'a local step': (ctx, call) => ctx.localStep('outer', call, { retries: 3 }),
      'a side effect': (ctx, call) => ctx.sideEffect(call),
      ...(kind.complete
        ? { 'a transaction': (ctx: WorkflowCtx, call) => ctx.transaction('outer', call) }
        : {}),
    }
    for (const [where, nest] of Object.entries(NESTED)) {
      test(`the context is refused inside ${where}, before a position is taken`, async ({
        assert,
      }) => {
        const engine = world.engine()
        const calls: Record<string, (ctx: WorkflowCtx) => Promise<unknown>> = {
          localStep: (ctx) => ctx.localStep('inner', () => 1),
          step: (ctx) => ctx.step('inner', 1),
          sleep: (ctx) => ctx.sleep(1),
          sleepUntil: (ctx) => ctx.sleepUntil(1),
          now: (ctx) => ctx.now(),
          sideEffect: (ctx) => ctx.sideEffect(() => 1),
          waitForSignal: (ctx) => ctx.waitForSignal('x'),
          setEvent: (ctx) => ctx.setEvent('k', 1),
          patched: (ctx) => ctx.patched('p'),
          continueAsNew: (ctx) => ctx.continueAsNew(1),
          transaction: (ctx) => ctx.transaction('inner', async () => 1),
        }
        let tries = 0
        engine.register('w', '1', async (ctx, name: string) => {
          const sibling = ctx.localStep('sibling', async () => 'fine')
          const error = await nest(ctx, async () => {
            tries += 1
            await Promise.resolve()
            return calls[name](ctx)
          }).catch((thrown: NestedWorkflowCallError) => thrown)
          return [await sibling, error]
        })
        for (const name of Object.keys(calls)) {
          tries = 0
          await engine.start('w', name, name)
          const output = (await world.output(name)) as [string, NestedWorkflowCallError]
          assert.equal(output[0], 'fine')
          assert.containsSubset(output[1], { code: 'nested_workflow_call', primitive: name })
          assert.equal(tries, 1)
          assert.lengthOf(await world.rows(name), 2)
        }
      })
    }

    test('statics of a workflow class are refused inside a step', async ({ assert }) => {
      class Other extends BaseWorkflow {
        static workflow = { name: 'other' }
        async run(): Promise<string> {
          return 'other'
        }
      }
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.localStep('outer', () => Other.start()))
      await engine.start('w', null, 'r')
      const run = await world.ended('r')
      assert.equal(run.error?.code, 'nested_workflow_call')
    })

    test('steps that run at the same time each see their own logger', async ({ assert }) => {
      const engine = world.engine()
      const arrived = [deferred<void>(), deferred<void>()]
      engine.register('w', '1', async (ctx) => {
        await Promise.all(
          [0, 1].map((i) =>
            ctx.localStep(`step ${i}`, async () => {
              arrived[i].resolve()
              await arrived[1 - i].promise
              currentStep()!.info(`line of ${i}`)
            })
          )
        )
      })
      await engine.start('w', null, 'r')
      await world.ended('r')
      for (const row of await world.rows('r')) {
        assert.deepEqual(
          row.events!.map((event) => event.message),
          [`line of ${row.seq}`]
        )
      }
    })

    test('context and trace travel with a task, and surround local work', async ({ assert }) => {
      const seen: unknown[] = []
      const engine = world.engine({
        transport: 'held',
        traceparent: () => '00-trace-01',
        context: () => ({ tenant: 't1' }),
        rehydrate: (carrier, fn) => {
          seen.push(carrier)
          return fn()
        },
      })
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1)
        await ctx.step('remote', 1)
      })
      await engine.start('w', null, 'r')
      const task = await world.held.task('remote')
      assert.deepInclude(task, { traceparent: '00-trace-01', context: { tenant: 't1' } })
      assert.deepEqual(seen, [{ tenant: 't1' }])
    })

    test('a beat is kept for a step that takes longer than a second', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.step('remote', 1))
      for (const id of ['quick', 'slow']) {
        await engine.start('w', null, id)
        await until(() => world.held.times(`${id}:0`), 'the task')
        await world.parked(id)
        await world.held.beat(`${id}:0`)
      }
      await world.time.advance(500)
      await world.held.complete('quick:0', 1)
      await world.time.advance(600)
      await world.held.beat('slow:0', { done: 5 })
      await world.quiet()
      const quick = await world.store.getCheckpoint('quick', 0)
      const slow = await world.store.getCheckpoint('slow', 0)
      assert.notProperty(quick, 'lastHeartbeatAt')
      assert.deepInclude(slow, { heartbeatProgress: { done: 5 }, status: 'pending' })
    }).skip(!kind.complete, 'a store without recordStepHeartbeat keeps no beats')
  })
}
