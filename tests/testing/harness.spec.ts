import { setTimeout as pause } from 'node:timers/promises'
import { test } from '@japa/runner'
import { turns } from '../helpers/fake_time.ts'
import { BaseWorkflow, InMemoryStateStore, type WorkflowCtx } from '../../index.ts'
import {
  assertOutput,
  assertRunStatus,
  assertStepAttempts,
  assertStepsRan,
  createTestEngine,
  failOnce,
  failTimes,
  MutableClock,
  recordedSteps,
} from '../../src/testing/main.ts'

const DAY = 24 * 60 * 60 * 1000

class Reminder extends BaseWorkflow {
  static workflow = { name: 'reminder', version: '2' }

  async run(ctx: WorkflowCtx, input: { to: string }) {
    await ctx.sleep('7 days')
    return ctx.localStep('send', () => `to ${input.to}`)
  }
}

test.group('testing kit | engine', () => {
  test('its clock begins at 1000 and moves only when told', async ({ assert }) => {
    const { clock, engine, run } = createTestEngine()
    assert.equal(clock.now(), 1000)
    engine.register('when', '1', (ctx) => ctx.now())
    const { output } = await run('when')
    assert.equal(output, 1000)
  })

  test('run registers a class, and waits until the run is suspended', async ({ assert }) => {
    const kit = createTestEngine()
    const { status } = await kit.run(Reminder, { to: 'ada' }, { runId: 'r' })
    assert.equal(status, 'suspended')

    await kit.tick(7 * DAY - 1)
    await assertRunStatus(kit, 'r', 'suspended')
    await kit.tick(1)
    await assertOutput(kit, 'r', 'to ada')
    const found = await kit.engine.getRun('r')
    assert.equal(found?.workflowVersion, '2')
  })

  test('run answers the end of a run with dispatched steps and children', async ({ assert }) => {
    const { engine, run } = createTestEngine()
    engine.handle('double', async (input) => (input as number) * 2)
    engine.register('child', '1', (ctx, input) => ctx.step('double', input))
    engine.register('parent', '1', async (ctx) => [
      await ctx.child('child', 4),
      ...(await ctx.all<number>('child', [1, 2])),
    ])
    const { status, output } = await run('parent')
    assert.equal(status, 'completed')
    assert.deepEqual(output, [8, 2, 4])
  })

  test('run waits for a step that takes real time', async ({ assert }) => {
    const { engine, run } = createTestEngine()
    engine.register('slow', '1', (ctx) => ctx.localStep('io', () => pause(60, 'done')))
    const { output } = await run('slow')
    assert.equal(output, 'done')
  })

  test('start options reach the run', async ({ assert }) => {
    const { engine, run, store } = createTestEngine({ namespace: 'eu' })
    engine.register('old', '1', async () => 'old')
    engine.register('old', '2', async () => 'new')
    const { output } = await run('old', null, { runId: 'o', version: '1', tags: ['t'] })
    assert.equal(output, 'old')
    const found = await store.getRun('o')
    assert.deepEqual(found?.tags, ['t'])
    assert.equal(found?.namespace, 'eu')
  })

  test('runToEnd jumps from deadline to deadline, along a chain', async ({ assert }) => {
    const { engine, runToEnd, clock } = createTestEngine()
    engine.register('yearly', '1', async (ctx, n: number) => {
      await ctx.sleep('365 days')
      if (n < 3) await ctx.continueAsNew(n + 1)
      return n
    })
    const { runId, output } = await runToEnd('yearly', 1, { runId: 'y' })
    assert.equal(output, 3)
    assert.equal(runId, 'y~2')
    assert.equal(clock.now(), 1000 + 3 * 365 * DAY)
  })

  test('runToEnd says what a run waits for that no time will bring', async ({ assert }) => {
    const { engine, runToEnd } = createTestEngine()
    engine.register('stuck', '1', async (ctx) => {
      await ctx.sleep('1 day')
      await ctx.waitForSignal('approval')
    })
    await assert.rejects(
      () => runToEnd('stuck', null, { runId: 's' }),
      'nothing is due any more: run s waits for signal approval'
    )
  })

  test('a run that never comes to rest is named', async ({ assert }) => {
    const { engine, run } = createTestEngine({ timeoutMs: 50 })
    engine.register('stuck', '1', (ctx) => ctx.localStep('never', () => new Promise(() => {})))
    await assert.rejects(
      () => run('stuck', null, { runId: 's' }),
      'still busy after 50 ms: run s executes; 0 dispatched steps in flight'
    )
  })

  test('a pause between attempts ends when the clock passes it', async ({ assert }) => {
    const kit = createTestEngine()
    const fails = failTimes(2, 'at last')
    let calls = 0
    const body = () => {
      calls += 1
      return fails()
    }
    kit.engine.register('retrying', '1', (ctx) =>
      ctx.localStep('flaky', body, { retries: 3, backoffMs: DAY })
    )
    const running = kit.run('retrying', null, { runId: 'r' })
    for (const attempt of [1, 2]) {
      while (calls < attempt) await pause(1)
      // The pause begins a few microtasks later.
      await turns(2)
      kit.clock.advance(DAY)
    }
    const { output } = await running
    assert.equal(output, 'at last')
    await assertStepAttempts(kit, 'r', 'flaky', 3)
  })

  test('two engines may share a store and a clock', async ({ assert }) => {
    const clock = new MutableClock(5)
    const store = new InMemoryStateStore()
    const first = createTestEngine({ store, clock })
    first.engine.register('job', '1', async (ctx) => {
      await ctx.sleep('1 hour')
      return 'done'
    })
    await first.run('job', null, { runId: 'j' })
    await first.close()

    const second = createTestEngine({ store, clock })
    second.engine.register('job', '1', async (ctx) => {
      await ctx.sleep('1 hour')
      return 'done'
    })
    await second.tick(60 * 60 * 1000)
    await assertOutput(second, 'j', 'done')
    assert.equal(clock.now(), 5 + 60 * 60 * 1000)
  })

  test('close waits for what is in flight', async ({ assert }) => {
    const kit = createTestEngine()
    let began = false
    let done = false
    kit.engine.register('slow', '1', (ctx) =>
      ctx.localStep('io', async () => {
        began = true
        await pause(30)
        done = true
      })
    )
    await kit.engine.start('slow', null, 's')
    while (!began) await pause(1)
    await kit.close()
    assert.isTrue(done)
  })

  test('time does not run backwards by a tick', async ({ assert }) => {
    const { tick } = createTestEngine()
    await assert.rejects(() => tick(-1), /-1 is no number of milliseconds/)
  })
})

test.group('testing kit | clock', () => {
  test('it can be set, advanced and passed around', ({ assert }) => {
    const clock = new MutableClock()
    const { now } = clock
    clock.set(7)
    clock.advance(3)
    assert.equal(now(), 10)
    assert.throws(() => clock.set(Number.NaN), /NaN is no time/)
  })
})

test.group('testing kit | assertions', () => {
  async function ended() {
    const kit = createTestEngine()
    kit.engine.handle('charge', failOnce({ receipt: 'r1' }))
    kit.engine.register('order', '1', async (ctx) => {
      const { receipt } = await ctx.step<{ receipt: string }>(
        'charge',
        { cents: 5 },
        { retries: 2 }
      )
      await ctx.localStep('mail', () => undefined)
      return { receipt, lines: [{ sku: 'a', count: 2 }], at: new Date(0) }
    })
    kit.engine.register('broken', '1', async () => {
      throw new Error('no luck')
    })
    await kit.runToEnd('order', null, { runId: 'o' })
    await kit.runToEnd('broken', null, { runId: 'b' })
    return kit
  }

  test('assertRunStatus names the status found and its reason', async ({ assert }) => {
    const kit = await ended()
    await assertRunStatus(kit, 'o', 'completed')
    await assertRunStatus(kit.store, 'o', 'completed')
    await assertRunStatus(kit.engine, 'b', 'failed')
    await assert.rejects(
      () => assertRunStatus(kit, 'b', 'completed'),
      'run b: expected status completed, found failed (no luck)'
    )
    await assert.rejects(() => assertRunStatus(kit, 'x', 'completed'), 'there is no run x')
  })

  test('assertOutput compares deeply, whatever the order of keys', async ({ assert }) => {
    const kit = await ended()
    const output = { lines: [{ count: 2, sku: 'a' }], at: new Date(0), receipt: 'r1' }
    await assertOutput(kit, 'o', output)
    await assert.rejects(
      () => assertOutput(kit, 'o', { ...output, lines: [{ count: 3, sku: 'a' }] }),
      'run o: output.lines[0].count: expected 3, got 2'
    )
    await assert.rejects(
      () => assertOutput(kit, 'o', { ...output, note: 'x' }),
      'run o: output.note: expected "x", got undefined'
    )
    await assert.rejects(() => assertOutput(kit, 'b', output), /found failed \(no luck\)/)
  })

  test('assertStepsRan looks for presence, in any order', async ({ assert }) => {
    const kit = await ended()
    await assertStepsRan(kit, 'o', ['mail', 'charge'])
    await assertStepsRan(kit, 'o', ['mail'])
    await assert.rejects(
      () => assertStepsRan(kit, 'o', ['mail', 'ship']),
      'run o: did not complete ship; recorded: charge (completed), mail (completed)'
    )
  })

  test('assertStepAttempts and recordedSteps read the record', async ({ assert }) => {
    const kit = await ended()
    await assertStepAttempts(kit, 'o', 'charge', 2)
    await assert.rejects(
      () => assertStepAttempts(kit, 'o', 'charge', 1),
      'run o: step "charge" took 2 attempts, not 1'
    )
    await assert.rejects(
      () => assertStepAttempts(kit, 'o', 'ship', 1),
      'run o: no step "ship"; recorded: ["charge","mail"]'
    )
    assert.deepEqual(await recordedSteps(kit, 'o'), ['charge', 'mail'])
  })

  test('failOnce and failTimes fail as often as they say', async ({ assert }) => {
    const once = failOnce('v')
    await assert.rejects(once, 'planned failure 1 of 1')
    assert.equal(await once(), 'v')
    const twice = failTimes(2, 'v', new TypeError('mine'))
    await assert.rejects(twice, 'mine')
    await assert.rejects(twice, 'mine')
    assert.equal(await twice(), 'v')
  })
})
