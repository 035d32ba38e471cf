/*
 * Defects planted in workflows are found, and named so that one can find them in the code.
 */
import { randomUUID } from 'node:crypto'
import { test } from '@japa/runner'
import { FatalError, type WorkflowCtx } from '../../index.ts'
import {
  assertSurvivesCrashes,
  type CrashFinding,
  type CrashReport,
  exploreCrashes,
} from '../../src/testing/main.ts'

const kinds = ({ findings }: CrashReport): string[] => [
  ...new Set(findings.map(({ kind }) => kind)),
]

function only(report: CrashReport, kind: CrashFinding['kind']): CrashFinding {
  const found = report.findings.find((finding) => finding.kind === kind)
  if (!found) throw new Error(`no finding of kind ${kind}: ${report}`)
  return found
}

const steps = { charge: () => 'charged', ship: () => 'shipped', wait: () => 'waited' }

test.group('exploreCrashes | planted non-determinism', (group) => {
  group.tap((t) => t.timeout(60_000))

  const branches: Record<string, [() => boolean, string]> = {
    'Math.random()': [() => Math.random() < 0.5, 'Math.random()'],
    'Math.random() that seldom hits': [() => Math.random() < 0.02, 'Math.random()'],
    'the parity of Date.now()': [() => Date.now() % 2 === 0, 'Date.now()'],
    'the hour of new Date()': [() => new Date().getHours() % 2 === 0, 'new Date()'],
  }
  for (const [title, [decides, read]] of Object.entries(branches)) {
    test(`a branch that hangs on ${title}`, async ({ assert }) => {
      const report = await exploreCrashes(
        async (ctx: WorkflowCtx) => {
          await ctx.step('charge', null)
          if (decides()) await ctx.localStep('left', () => 1)
          else await ctx.localStep('right', () => 1)
          await ctx.step('ship', null)
        },
        null,
        { steps }
      )
      assert.isFalse(report.ok)
      const { position, message, diff, at } = only(report, 'non_determinism')
      assert.equal(position, 1)
      assert.match(
        message,
        /position 1: recorded is "(left|right)" \(local\), a replay asks for "(left|right)" \(local\)/
      )
      assert.include(message, `; the body reads ${read} outside of its ctx`)
      assert.match(
        diff!,
        /^ {5}0 {2}charge \(remote\) completed\n- {4}1 {2}"\w+" \(local\)\n\+ {4}1 {2}"\w+" \(local\)$/
      )
      assert.isNotEmpty(at)
    })
  }

  test('a number of steps that hangs on chance', async ({ assert }) => {
    const report = await exploreCrashes(async (ctx: WorkflowCtx) => {
      for (let i = 0; i < 1 + Math.random() * 3; i++) await ctx.localStep(`step ${i}`, () => i)
      await ctx.sleep('1 day')
    }, null)
    assert.deepEqual(kinds(report), ['non_determinism'])
  })

  test('a name made of a random id', async ({ assert }) => {
    const report = await exploreCrashes(
      (ctx: WorkflowCtx) => ctx.localStep(`job ${randomUUID()}`, () => 1),
      null
    )
    const { at } = only(report, 'non_determinism')
    assert.isNotEmpty(at)
  })

  test('a counter that lives longer than the run', async ({ assert }) => {
    let runs = 0
    const report = await exploreCrashes(async (ctx: WorkflowCtx) => {
      runs += 1
      if (runs % 2 === 0) await ctx.sleep(10)
      await ctx.localStep('a', () => 1)
    }, null)
    assert.isTrue(kinds(report).includes('non_determinism'))
  })

  test('a replay that asks for less than is recorded', async ({ assert }) => {
    let first = true
    const report = await exploreCrashes(async (ctx: WorkflowCtx) => {
      await ctx.localStep('a', () => 1)
      if (!first) return
      first = false
      await ctx.localStep('b', () => 1)
    }, null)
    const { message } = only(report, 'non_determinism')
    assert.match(message, /position 1: recorded is "b" \(local\), a replay asks for nothing/)
  })

  test('an output that the body rolled', async ({ assert }) => {
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx) => {
        await ctx.step('charge', null)
        return { orderId: '7', code: Math.random() }
      },
      null,
      { steps }
    )
    const { message } = only(report, 'output')
    assert.match(message, /^run explored: \.output\.code: expected 0\.\d+, got [01](\.\d+)?$/)
  })

  test('a wait that only a replay comes to', async ({ assert }) => {
    let executions = 0
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx) => {
        if (executions++ > 0) await ctx.waitForSignal('never')
        return 'done'
      },
      null,
      { setup: () => void (executions = 0) }
    )
    const { message, at } = only(report, 'stuck')
    assert.equal(message, 'run explored (suspended) waits for signal "never"')
    assert.deepEqual(at, ['a crash before the write of run explored as completed'])
  })

  test('an input that the body rolled', async ({ assert }) => {
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx) => void (await ctx.step('charge', { at: Date.now() })),
      null,
      { steps }
    )
    const { message, position } = only(report, 'input')
    assert.equal(position, 0)
    assert.match(message, /position 0: the input of "charge"\.at: expected \d+, got \d+/)
  })

  test('a defect in a child is named with the child', async ({ assert }) => {
    const report = await exploreCrashes(
      (ctx: WorkflowCtx) => ctx.child('child', null, 'kid'),
      null,
      {
        workflows: [
          {
            name: 'child',
            run: (ctx) => ctx.localStep(Math.random() < 0.5 ? 'heads' : 'tails', () => 1),
          },
        ],
      }
    )
    assert.equal(only(report, 'non_determinism').runId, 'kid')
  })
})

test.group('exploreCrashes | planted double effects', (group) => {
  group.tap((t) => t.timeout(60_000))

  test('an effect that the body calls itself', async ({ assert }) => {
    const mailer = { sent: 0, send: (_to: string) => void (mailer.sent += 1) }
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx) => {
        mailer.send('ada')
        await ctx.step('charge', null)
      },
      null,
      { steps, effects: { mailer } }
    )
    assert.deepEqual(kinds(report), ['effect'])
    const { message } = only(report, 'effect')
    assert.match(message, /^mailer\.send is called by the body itself: every replay calls it again/)
    assert.isAbove(mailer.sent, 1)
  })

  test('an effect of one step that grows from run to run', async ({ assert }) => {
    const bank = { transfer() {} }
    let transfers = 0
    const report = await exploreCrashes(
      (ctx: WorkflowCtx) =>
        ctx.localStep('pay', () => {
          transfers += 1
          for (let i = 0; i < transfers; i++) bank.transfer()
        }),
      null,
      { effects: { bank } }
    )
    const { message } = only(report, 'effect')
    assert.match(message, /bank\.transfer in step "pay" ran \d+ times, where \d+ are allowed/)
  })

  test('a step that another life takes again', async ({ assert }) => {
    const lives = new Set<unknown>()
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx) => {
        const life = {}
        lives.add(life)
        await ctx.localStep('a', () => 1)
        // What is decided by memory of the process happens once in each process.
        if (lives.size % 3 === 2) await ctx.localStep('a', () => 1)
        await ctx.step('charge', null)
      },
      null,
      { steps }
    )
    assert.isFalse(report.ok)
  })

  test('a step that cannot be run twice fails its run', async ({ assert }) => {
    let charged = false
    const report = await exploreCrashes(
      (ctx: WorkflowCtx) =>
        ctx.localStep('charge', () => {
          if (charged) throw new FatalError('already charged')
          charged = true
          return 'charged'
        }),
      null,
      { setup: () => void (charged = false) }
    )
    assert.deepEqual(kinds(report), ['output'])
    const { message, diff, at } = only(report, 'output')
    assert.equal(
      message,
      'run explored ended as failed (already charged), in the first run as completed'
    )
    assert.equal(diff, '-    0  charge (local) completed\n+    0  charge (local) failed')
    assert.deepEqual(at, ['a crash before the write of position 0 "charge" (local, completed)'])
  })
})

test.group('exploreCrashes | planted swallowed suspensions', (group) => {
  group.tap((t) => t.timeout(60_000))

  test('a catch that returns', async ({ assert }) => {
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx) => {
        try {
          return await ctx.step('charge', null)
        } catch {
          return 'free of charge'
        }
      },
      null,
      { steps }
    )
    assert.deepEqual(kinds(report), ['swallowed_suspension'])
    assert.match(
      only(report, 'swallowed_suspension').message,
      /caught the suspension of ctx\.step\("charge"\) and returned "free of charge": rethrow/
    )
  })

  test('a catch that throws something else', async ({ assert }) => {
    const report = await exploreCrashes(async (ctx: WorkflowCtx) => {
      await ctx.sleep('1 day').catch((cause: unknown) => {
        throw new Error('the sleep failed', { cause })
      })
    }, null)
    assert.match(
      only(report, 'swallowed_suspension').message,
      /ctx\.sleep\("1 day"\) and threw "the sleep failed"/
    )
  })

  test('branches that are settled together', async ({ assert }) => {
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx) => {
        const all = await Promise.allSettled([ctx.step('charge', null), ctx.step('ship', null)])
        return all.map(({ status }) => status)
      },
      null,
      { steps }
    )
    assert.isTrue(kinds(report).includes('swallowed_suspension'))
  })

  test('a continue-as-new that is caught', async ({ assert }) => {
    const report = await exploreCrashes(async (ctx: WorkflowCtx) => {
      await ctx.localStep('work', () => 1)
      await ctx.continueAsNew(null).catch(() => {})
      return 'ended'
    }, null)
    assert.match(
      only(report, 'swallowed_suspension').message,
      /caught the continue-as-new of ctx\.continueAsNew\(…\) and returned "ended"/
    )
  })

  test('it can be ignored', async ({ assert }) => {
    const report = await exploreCrashes(
      async (ctx: WorkflowCtx) => ctx.step('charge', null).catch(() => 'free'),
      null,
      { steps, ignore: ['swallowed_suspension'] }
    )
    assert.isTrue(report.ok)
  })
})

test.group('exploreCrashes | reports', (group) => {
  group.tap((t) => t.timeout(60_000))

  test('a report reads as text, and is what the assertion throws', async ({ assert }) => {
    const body = async (ctx: WorkflowCtx) => {
      await ctx.step('charge', null)
      await ctx.localStep(Math.random() < 0.5 ? 'left' : 'right', () => 1)
    }
    const error = (await assertSurvivesCrashes(body, null, { steps }).catch(
      (thrown: unknown) => thrown
    )) as Error & { report: CrashReport; code: string }
    assert.equal(error.code, 'crash_findings')
    assert.equal(error.message, String(error.report))
    assert.match(
      error.message,
      /^\d+ crashes at \d+ writes of run explored: \d+ findings?\.\n\n1\. non determinism: run explored, position 1: /
    )
    assert.match(error.message, /\n {3}seen with (a crash (before|after) the write of |no crash)/)
  })

  test('a step without a body is named', async ({ assert }) => {
    await assert.rejects(
      () => exploreCrashes((ctx: WorkflowCtx) => ctx.step('nobody', null), null),
      `step "nobody" has no body here: give it one, steps: { 'nobody': … }`
    )
  })

  test('a wait that nobody ends is named', async ({ assert }) => {
    await assert.rejects(
      () => exploreCrashes((ctx: WorkflowCtx) => ctx.waitForSignal('approval'), null),
      /does not come to an end: run explored \(suspended\) waits for signal "approval"\. Give/
    )
  })

  test('a step that never ends is named', async ({ assert }) => {
    const body = (ctx: WorkflowCtx) => ctx.localStep('endless', () => new Promise(() => {}))
    await assert.rejects(
      () => exploreCrashes(body, null, { patienceMs: 30 }),
      /run explored \(running\) executes "endless", which shows no end/
    )
  })

  test('a child that is not given is named', async ({ assert }) => {
    await assert.rejects(
      () => exploreCrashes((ctx: WorkflowCtx) => ctx.child('nobody', 1), null),
      /child workflow "nobody" failed to start: .*Give it in workflows\.$/
    )
  })

  test('a difference that is no defect can be declared one', async ({ assert }) => {
    const body = async () => Math.random()
    const strict = await exploreCrashes(body, null)
    assert.isFalse(strict.ok)
    const lenient = await exploreCrashes(body, null, {
      compare: (expected, actual) => expected.status === actual.status,
      ignore: ['non_determinism'],
    })
    assert.isTrue(lenient.ok)
  })

  test('chance and time are given back, also when an exploration fails', async ({ assert }) => {
    const before = [Math.random, Date.now, Date]
    await exploreCrashes((ctx: WorkflowCtx) => ctx.waitForSignal('x'), null).catch(() => {})
    assert.deepEqual([Math.random, Date.now, Date], before)
    await Promise.all([
      exploreCrashes(async (ctx: WorkflowCtx) => ctx.now(), null),
      exploreCrashes(async (ctx: WorkflowCtx) => ctx.sleep(5), null),
    ])
    assert.deepEqual([Math.random, Date.now, Date], before)
  })

  test('dates are dates while it runs', async ({ assert }) => {
    const seen: boolean[] = []
    await exploreCrashes(async (ctx: WorkflowCtx) => {
      seen.push(new Date() instanceof Date, new Date(0).getTime() === 0, Date.UTC(1970) === 0)
      await ctx.localStep('here', () => {
        seen.push(Math.abs(Date.now() - performance.timeOrigin) < 3_600_000)
      })
    }, null)
    assert.notInclude(seen, false)
  })
})
