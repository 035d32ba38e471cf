/*
 * Workflows that survive crashes pass, whatever they are made of.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { test } from '@japa/runner'
import {
  BaseWorkflow,
  defineStep,
  FatalError,
  isWorkflowControlFlowSignal,
  type WorkflowCtx,
} from '../../index.ts'
import { assertSurvivesCrashes, exploreCrashes, failOnce } from '../../src/testing/main.ts'

class Child extends BaseWorkflow {
  static workflow = { name: 'child', version: '1' }

  async run(ctx: WorkflowCtx, n: number) {
    await ctx.sleep('1 hour')
    return ctx.step<number>('double', n)
  }
}

const double = (n: number) => n * 2
const hold = defineStep('hold', async (_input: { cents: number }) => ({ holdId: 'h1' }))

test.group('exploreCrashes | what survives', (group) => {
  group.tap((t) => t.timeout(60_000))

  test('steps, local steps, sleeps, captures and published values', async ({ assert }) => {
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx, input: { cents: number }) => {
        const at = await ctx.now()
        const id = await ctx.sideEffect(() => Math.random())
        const held = await ctx.step(hold, { cents: input.cents })
        await ctx.sleep('7 days')
        await ctx.setEvent('stage', 'late')
        const sum = await ctx.localStep('sum', () => input.cents + 1, {
          retries: 3,
          backoffMs: 500,
        })
        const booked = await ctx.transaction('book', async () => 'booked')
        return { at, id, held, sum, booked }
      },
      { cents: 5 },
      { steps: { hold: () => ({ holdId: 'h1' }) } }
    )
    assert.equal(
      String(report),
      `${report.crashes} crashes at ${report.boundaries} writes of run explored: it ends as completed every time.`
    )
    assert.isTrue(report.ok)
    assert.isAbove(report.boundaries, 7)
    assert.equal(report.crashes, 2 * report.boundaries)
    assert.equal(report.end.status, 'completed')
  })

  test('retries, timeouts of waits, failures that are caught', async ({ assert }) => {
    let flaky = failOnce('ok')
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx) => {
        const first = await ctx.localStep('flaky', () => flaky(), { retries: 2, backoffMs: 1000 })
        const second = await ctx.step('remote', null, { retries: 3, backoffMs: 5000 })
        const caught = await ctx
          .localStep('fatal', () => {
            throw new FatalError('no', 'nope')
          })
          .catch((error: { code?: string }) => error.code)
        const late = await ctx
          .waitForSignal('never', { timeoutMs: 60_000 })
          .catch((error: { code?: string }) => {
            if (isWorkflowControlFlowSignal(error)) throw error
            return error.code
          })
        return { first, second, caught, late }
      },
      null,
      { steps: { remote: () => 'r' }, setup: () => void (flaky = failOnce('ok')) }
    )
    assert.equal(String(report.findings.map(({ message }) => message)), '')
    assert.deepEqual(report.end.output, {
      first: 'ok',
      second: 'r',
      caught: 'nope',
      late: 'signal_timeout',
    })
  })

  test('signals, in time, early and twice, several of one token', async ({ assert }) => {
    const report = await assertSurvivesCrashes(
      async (ctx: WorkflowCtx) => {
        const approval = await ctx.waitForSignal<{ by: string }>('approval')
        const pages: unknown[] = []
        for (let i = 0; i < 2; i++) {
          pages.push(await ctx.waitForSignal('page', { timeoutMs: 3 * 86_400_000 }))
        }
        return { by: approval.by, pages }
      },
      null,
      {
        signals: [
          { token: 'approval', payload: { by: 'ada' } },
          { token: 'page', payload: 1 },
          { token: 'page', payload: 2 },
        ],
      }
    )
    assert.deepEqual(report.end.output, { by: 'ada', pages: [1, 2] })
  })

  test('children, fans and branches', async ({ assert }) => {
    const report = await assertSurvivesCrashes(
      async (ctx: WorkflowCtx, n: number) => {
        const child = await ctx.child(Child, n)
        const [fan, steps] = await Promise.all([
          ctx.all(Child, [1, 2, 3], { concurrency: 2 }),
          ctx.allSettled<number>('double', [5, 6]),
        ])
        const started = await ctx.startChild(Child, 9)
        return { child, fan, steps, started }
      },
      1,
      { steps: { double }, workflows: [Child, { name: 'double', run: async () => 'a workflow' }] }
    )
    assert.deepEqual((report.end.output as { fan: unknown }).fan, [2, 4, 6])
  })

  test('sagas: undone in reverse, here and by dispatch', async ({ assert }) => {
    const bank = {
      refunds: 0,
      refund() {
        this.refunds += 1
      },
    }
    const report = await assertSurvivesCrashes(
      async (ctx: WorkflowCtx) => {
        await ctx.step(hold, { cents: 1 }, { compensate: 'release' })
        await ctx.localStep('reserve', () => 'r', { compensate: () => bank.refund() })
        await ctx.sleep('1 day')
        throw new FatalError('declined', 'card_declined')
      },
      null,
      { steps: { hold: () => ({ holdId: 'h' }), release: () => null }, effects: { bank } }
    )
    assert.deepEqual(report.end.error, { message: 'declined', code: 'card_declined' })
    assert.isAbove(bank.refunds, 0)
  })

  test('a chain of continuations', async ({ assert }) => {
    const report = await assertSurvivesCrashes(
      {
        name: 'chain',
        version: '3',
        run: async (ctx, n: number) => {
          await ctx.localStep('work', () => n)
          await ctx.sleep('30 days')
          if (n < 3) await ctx.continueAsNew(n + 1)
          return n
        },
      },
      1
    )
    assert.deepEqual(report.end, { runId: 'explored~2', status: 'completed', output: 3 })
  })

  test('effects in steps may repeat when the crash left no other choice', async ({ assert }) => {
    class Mailer {
      sent = 0
      async send() {
        await pause(1)
        this.sent += 1
      }
    }
    const mailer = new Mailer()
    const report = await assertSurvivesCrashes(
      async (ctx: WorkflowCtx) => {
        await ctx.localStep('mail', () => mailer.send())
        await ctx.step('notify', null)
      },
      null,
      { steps: { notify: () => mailer.send() }, effects: { mailer } }
    )
    assert.isAbove(mailer.sent, 2 * (report.crashes + 1))
    assert.isFalse(Object.hasOwn(mailer, 'send'))
  })

  test('a body that waits for something else than its ctx is waited for', async ({ assert }) => {
    const report = await assertSurvivesCrashes(async (ctx: WorkflowCtx) => {
      await pause(3)
      return ctx.localStep('after', () => pause(3, 'done'))
    }, null)
    assert.equal(report.end.output, 'done')
  })

  test('a class of which the statics start a child', async ({ assert }) => {
    class Parent extends BaseWorkflow {
      static workflow = { name: 'parent' }

      async run(_ctx: WorkflowCtx, n: number) {
        return Child.start(n)
      }
    }
    const report = await assertSurvivesCrashes(Parent, 4, {
      steps: { double },
      workflows: [Child],
      runId: 'p',
    })
    assert.deepEqual(report.end, { runId: 'p', status: 'completed', output: 8 })
  })

  test('crashes can be limited', async ({ assert }) => {
    const report = await assertSurvivesCrashes(
      async (ctx: WorkflowCtx) => {
        for (let i = 0; i < 50; i++) await ctx.localStep(`step ${i}`, () => i)
      },
      null,
      { limit: 10 }
    )
    assert.equal(report.crashes, 10)
    assert.isAbove(report.boundaries, 50)
  })
})
