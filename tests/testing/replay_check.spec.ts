import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from '@japa/runner'
import { z } from 'zod'
import {
  type WorkflowCtx,
  type WorkflowEngine,
  type WorkflowFn,
  InMemoryStateStore,
} from '../../index.ts'
import {
  assertReplayable,
  captureHistory,
  createTestEngine,
  parseRunHistory,
  type RunHistory,
} from '../../src/testing/main.ts'

type Body = (ctx: WorkflowCtx, input: { cents: number }) => Promise<unknown>

const order: Body = async (ctx, { cents }) => {
  const { receipt } = await ctx.step<{ receipt: string }>('charge', { cents })
  await ctx.sleep('1 day')
  const mailed = await ctx.localStep('mail', () => 'mailed')
  return { receipt, mailed }
}

const as =
  (body: Body, name = 'order') =>
  (engine: WorkflowEngine) =>
    engine.register(name, '1', body as WorkflowFn)

/** The history of a run of `body`, at its end or where it stands by itself. */
async function historyOf(body: Body, options: { end?: boolean } = {}): Promise<RunHistory> {
  const kit = createTestEngine()
  kit.engine.handle('charge', async () => ({ receipt: 'r1' }))
  kit.engine.register('child', '1', async (_ctx, input) => input)
  as(body)(kit.engine)
  await (options.end === false ? kit.run : kit.runToEnd)('order', { cents: 5 }, { runId: 'o' })
  return captureHistory(kit, 'o')
}

const viaJson = (history: RunHistory): string => JSON.stringify(history)

test.group('testing kit | replay check', () => {
  test('a history replays against the code that made it', async () => {
    await assertReplayable(as(order), await historyOf(order))
    await assertReplayable(as(order), viaJson(await historyOf(order)))
    await assertReplayable(as(order), await historyOf(order, { end: false }))
  })

  test('no step body runs, recorded or not', async ({ assert }) => {
    const live = await historyOf(order, { end: false })
    const calls: string[] = []
    const watched: Body = async (ctx, { cents }) => {
      await ctx.step('charge', { cents })
      await ctx.sleep('1 day')
      await ctx.localStep('mail', () => void calls.push('mail'))
      await ctx.transaction('book', async () => void calls.push('book'))
      await ctx.sideEffect(() => void calls.push('sideEffect'))
    }
    await assertReplayable(as(watched), live)
    // The sleep is over: the body gets past its record, and stands still there.
    live.run.updatedAt = new Date(10 * 24 * 60 * 60 * 1000)
    await assertReplayable(as(watched), live)
    assert.deepEqual(calls, [])
  })

  test('another name or kind at a recorded position is non-determinism', async ({ assert }) => {
    const history = await historyOf(order)
    const renamed: Body = async (ctx, { cents }) => ctx.step('bill', { cents })
    await assert.rejects(
      () => assertReplayable(as(renamed), history),
      /run o, position 0: history recorded "charge" \(remote\), the code now asks for "bill"/
    )
    const other: Body = async (ctx) => ctx.localStep('charge', () => 1)
    const error = await assertReplayable(as(other), history).catch((thrown: unknown) => thrown)
    assert.equal((error as { code?: string }).code, 'non_determinism')
  })

  test('a mismatch that the body catches is found all the same', async ({ assert }) => {
    const swallowing: Body = async (ctx, { cents }) => {
      await ctx.step('bill', { cents }).catch(() => {})
      return 'fine'
    }
    const history = await historyOf(order)
    await assert.rejects(() => assertReplayable(as(swallowing), history), /now asks for "bill"/)
  })

  test('code that asks for less than is recorded is non-determinism', async ({ assert }) => {
    const shorter: Body = async (ctx, { cents }) => ctx.step('charge', { cents })
    const history = await historyOf(order)
    await assert.rejects(
      () => assertReplayable(as(shorter), history),
      /position 1: history recorded "sleep" \(sleep\), the code now asks for nothing \(it returns\)/
    )
  })

  test('code that fails before its record ends is found', async ({ assert }) => {
    const failing: Body = async (ctx, { cents }) => {
      await ctx.step('charge', { cents })
      throw new TypeError('cannot read properties of undefined')
    }
    for (const options of [{}, { end: false }]) {
      const history = await historyOf(order, options)
      await assert.rejects(
        () => assertReplayable(as(failing), history),
        /the code fails at position 1 with cannot read properties of undefined/
      )
    }
  })

  test('another output is named by its path', async ({ assert }) => {
    const other: Body = async (ctx, input) => {
      const result = (await order(ctx, input)) as { receipt: string }
      return { ...result, receipt: result.receipt.toUpperCase() }
    }
    const history = await historyOf(order)
    await assert.rejects(
      () => assertReplayable(as(other), history),
      'run o of workflow order@1: output.receipt: expected "r1", got "R1"'
    )
  })

  test('code that waits where the recorded run had ended is found', async ({ assert }) => {
    const longer: Body = async (ctx, input) => {
      await order(ctx, input)
      await ctx.waitForSignal('more')
    }
    const history = await historyOf(order)
    await assert.rejects(
      () => assertReplayable(as(longer), history),
      /recorded as completed: the code waits for signal at position 3/
    )
  })

  test('a failed run must fail alike', async ({ assert }) => {
    const refused: Body = async (ctx, { cents }) => {
      await ctx.step('charge', { cents })
      throw new Error('refused')
    }
    const history = await historyOf(refused)
    await assertReplayable(as(refused), history)
    const accepted: Body = async (ctx, { cents }) => ctx.step('charge', { cents })
    await assert.rejects(
      () => assertReplayable(as(accepted), history),
      /recorded as failed \(refused\): the code completes/
    )
    const otherwise: Body = async (ctx, { cents }) => {
      await ctx.step('charge', { cents })
      throw new Error('declined')
    }
    await assert.rejects(
      () => assertReplayable(as(otherwise), history),
      /recorded as failed \(refused\): the code fails at position 1 with declined/
    )
  })

  test('a workflow that is not registered does not pass', async ({ assert }) => {
    const history = await historyOf(order)
    const error = await assertReplayable(() => {}, history).catch((thrown: unknown) => thrown)
    assert.equal((error as { code?: string }).code, 'workflow_not_registered')
    await assert.rejects(() => assertReplayable(as(order, 'other'), history), /other@1/)
  })

  test('children, fans, races, chains, patches and schemas replay', async () => {
    const body: Body = async (ctx, { cents }) => {
      const now = await ctx.now()
      const id = await ctx.sideEffect(() => 'id')
      const [first, fan] = await Promise.all([
        ctx.child('child', cents),
        ctx.all('child', [1, 2, 3]),
      ])
      const won = await Promise.race([ctx.sleep(1000), ctx.step('charge', { cents })])
      const timedOut = await ctx.waitForSignal('never', { timeoutMs: 10 }).catch(() => 'timed out')
      await ctx.setEvent('stage', 'late')
      if (await ctx.patched('one')) await ctx.localStep('patched', () => 1)
      return { now, id, first, fan, won, timedOut }
    }
    const history = await historyOf(body)
    await assertReplayable((engine) => {
      engine.register('order', '1', body as WorkflowFn, {
        inputSchema: z.object({ cents: z.number() }),
      })
    }, viaJson(history))
    const chain: Body = async (ctx, { cents }) => {
      if (cents < 7) await ctx.continueAsNew({ cents: cents + 1 })
      return cents
    }
    await assertReplayable(as(chain), await historyOf(chain))
  })

  test('a body that waits for something else than its ctx is waited for', async () => {
    const body: Body = async (ctx, { cents }) => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      return ctx.step('charge', { cents })
    }
    await assertReplayable(as(body), await historyOf(body))
  })
})

test.group('testing kit | histories in files', () => {
  test('a folder is searched, and every history of it checked', async ({ assert, fs }) => {
    const done = await historyOf(order)
    await fs.create('histories/v1/done.json', viaJson(done))
    await fs.create('histories/live.json', viaJson(await historyOf(order, { end: false })))
    await fs.create('histories/notes.md', 'not a history')
    await assertReplayable(as(order), join(fs.basePath, 'histories'))
    await assertReplayable(as(order), pathToFileURL(join(fs.basePath, 'histories')))
    await assertReplayable(as(order), join(fs.basePath, 'histories/live.json'))

    const renamed: Body = async (ctx) => ctx.step('bill', null)
    const error = (await assertReplayable(as(renamed), join(fs.basePath, 'histories')).catch(
      (thrown: unknown) => thrown
    )) as Error & { failures: { file: string }[] }
    assert.lengthOf(error.failures, 2)
    assert.match(error.message, /^2 captured histories do not replay:\n {2}.*live\.json: run o/)
    assert.match(error.message, /done\.json: run o, position 0/)
  })

  test('an empty folder and a missing one do not pass', async ({ assert, fs }) => {
    await fs.create('empty/notes.md', '')
    await assert.rejects(
      () => assertReplayable(as(order), join(fs.basePath, 'empty')),
      /holds no \*\.json file/
    )
    await assert.rejects(
      () => assertReplayable(as(order), join(fs.basePath, 'nowhere')),
      /there is no file or folder/
    )
  })

  test('a file that is no history is named', async ({ assert, fs }) => {
    await fs.create('broken/a.json', '{"run":{}}')
    await assert.rejects(
      () => assertReplayable(as(order), join(fs.basePath, 'broken')),
      /broken\/a\.json: checkpoints: must be a list/
    )
  })
})

test.group('testing kit | captured history', () => {
  test('it reads back as it was captured, dates included', async ({ assert }) => {
    const history = await historyOf(order)
    assert.deepEqual(parseRunHistory(viaJson(history)), JSON.parse(viaJson(history), revive))
    assert.deepEqual(parseRunHistory(JSON.parse(viaJson(history))).run, history.run)
    assert.deepEqual(
      history.checkpoints.map(({ seq, name }) => [seq, name]),
      [
        [0, 'charge'],
        [1, 'sleep'],
        [2, 'mail'],
      ]
    )
    assert.notProperty(history.run, 'lockedBy')
  })

  test('it can be captured from a store; an unknown run is an error', async ({ assert }) => {
    const store = new InMemoryStateStore()
    const kit = createTestEngine({ store })
    kit.engine.register('w', '1', async () => 1)
    await kit.run('w', null, { runId: 'r' })
    const { run } = await captureHistory(store, 'r')
    assert.equal(run.output, 1)
    await assert.rejects(() => captureHistory(kit, 'x'), 'there is no run x')
  })

  test('what is no history is refused with the member that is wrong', async ({ assert }) => {
    const history = JSON.parse(viaJson(await historyOf(order)))
    const [row] = history.checkpoints
    const wrong: [unknown, RegExp][] = [
      ['{', /^not JSON/],
      [[], /is a JSON object/],
      [{ format: 'other', ...history }, /format: expected "durable-run-history", found "other"/],
      [{ version: 2, ...history }, /version 2 is newer than 1/],
      [{ checkpoints: [] }, /^run: is missing/],
      [{ ...history, run: { ...history.run, id: '' } }, /^run\.id: must be a string/],
      [{ ...history, run: { ...history.run, createdAt: 'x' } }, /^run\.createdAt: must be a date/],
      [{ ...history, checkpoints: [null] }, /^checkpoints\[0\]: must be an object/],
      [{ ...history, checkpoints: [{ ...row, seq: '1' }] }, /^checkpoints\[0\]\.seq/],
      [
        { ...history, checkpoints: [{ ...row, kind: 'x' }] },
        /^checkpoints\[0\]\.kind: must be one/,
      ],
      [{ ...history, checkpoints: [{ ...row, startedAt: null }] }, /^checkpoints\[0\]\.startedAt/],
    ]
    for (const [source, message] of wrong) {
      assert.throws(() => parseRunHistory(source as object), message)
    }
    assert.doesNotThrow(() =>
      parseRunHistory({ format: 'durable-run-history', version: 1, ...history })
    )
  })
})

function revive(key: string, value: unknown): unknown {
  return /(?:At)$/.test(key) && typeof value === 'string' ? new Date(value) : value
}
