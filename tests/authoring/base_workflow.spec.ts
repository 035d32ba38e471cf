/*
 * The statics of a workflow class: through the engine outside a body, through the ctx inside one.
 */
import { setImmediate } from 'node:timers/promises'
import { test } from '@japa/runner'
import { runInStepBody, runInWorkflowScope } from '../../src/authoring/ambient.ts'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import * as resolvers from '../../src/authoring/engine_resolver.ts'
import { InvalidArgumentError, NestedWorkflowCallError } from '../../src/errors.ts'
import { isFatal } from '../../src/foundation/failure.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { RunResult } from '../../src/types/run.ts'
import { failureOf } from './tree.ts'

const { resolveWorkflowEngine, setDefaultWorkflowEngineResolver, setWorkflowEngineResolver } =
  resolvers

class Order extends BaseWorkflow {
  static override workflow = { name: 'order' }

  async run(_ctx: WorkflowCtx, input: { id: number }) {
    return { total: input.id }
  }
}

class Nameless extends BaseWorkflow {
  async run() {}
}

/** An engine that records its calls and ends every run as told. */
function engineEnding(end: Omit<RunResult, 'runId'>) {
  const calls: unknown[][] = []
  return {
    calls,
    async start(...call: [workflow: string, input: unknown, runId: string, options?: object]) {
      calls.push(['start', ...call])
      return { runId: call[2], status: 'pending' as const }
    },
    async waitForRun(runId: string, options?: object) {
      calls.push(['waitForRun', runId, options])
      return { runId, ...end }
    },
  }
}

/** A ctx with the calls for children, which records them. */
function ctxWithChildren(answer: () => Promise<unknown> = async () => ({ total: 1 })) {
  const calls: unknown[][] = []
  const child = (...call: unknown[]) => {
    calls.push(['child', ...call])
    return answer()
  }
  const startChild = (...call: unknown[]) => {
    calls.push(['startChild', ...call])
    return answer()
  }
  return { calls, ctx: { runId: 'parent', child, startChild } as unknown as WorkflowCtx }
}

const emptySlots = () => {
  setWorkflowEngineResolver(undefined)
  setDefaultWorkflowEngineResolver(undefined)
}

test.group('BaseWorkflow | outside a workflow', (group) => {
  group.each.teardown(emptySlots)

  test('start runs to the end and answers the output', async ({ assert }) => {
    const engine = engineEnding({ status: 'completed', output: { total: 7 } })
    setWorkflowEngineResolver(() => engine)
    assert.deepEqual(await Order.start({ id: 7 }, { runId: 'order:7', tags: ['x'], priority: 2 }), {
      total: 7,
    })
    assert.deepEqual(engine.calls, [
      ['start', 'order', { id: 7 }, 'order:7', { tags: ['x'], priority: 2 }],
      ['waitForRun', 'order:7', { terminal: true }],
    ])
  })

  test('dispatch answers the run id and does not wait', async ({ assert }) => {
    const engine = engineEnding({ status: 'completed' })
    setWorkflowEngineResolver(async () => engine)
    assert.deepEqual(await Order.dispatch({ id: 7 }, { runId: 'order:7', namespace: 'n' }), {
      runId: 'order:7',
    })
    assert.deepEqual(engine.calls, [['start', 'order', { id: 7 }, 'order:7', { namespace: 'n' }]])
  })

  test('without a run id each run gets a random one', async ({ assert }) => {
    const engine = engineEnding({ status: 'completed' })
    setWorkflowEngineResolver(() => engine)
    const first = await Order.dispatch({ id: 1 })
    const second = await Order.dispatch({ id: 1 }, { runId: undefined })
    assert.match(first.runId, /^[0-9a-f]{8}-/)
    assert.notEqual(first.runId, second.runId)
    assert.deepEqual(
      engine.calls.map((call) => call[3]),
      [first.runId, second.runId]
    )
  })

  test('a failed run rejects with its error', async ({ assert }) => {
    const details = { card: 'x' }
    setWorkflowEngineResolver(() =>
      engineEnding({
        status: 'failed',
        error: { message: 'card declined', code: 'declined', details, retryable: false },
      })
    )
    const failure = await failureOf(Order.start({ id: 1 }))
    assert.instanceOf(failure, Error)
    assert.equal(failure.message, 'card declined')
    assert.containSubset(failure, { code: 'declined', details })
    assert.isTrue(isFatal(failure))
  })

  test('so does a cancelled or dead one, with or without an error', async ({ assert }) => {
    setWorkflowEngineResolver(() =>
      engineEnding({ status: 'cancelled', error: { message: 'too slow', code: 'timeout' } })
    )
    assert.containSubset(await failureOf(Order.start({ id: 1 })), { code: 'timeout' })
    setWorkflowEngineResolver(() => engineEnding({ status: 'cancelled' }))
    const failure = await failureOf(Order.start({ id: 1 }, { runId: 'order:1' }))
    assert.equal(failure.message, 'run order:1 of workflow order ended as cancelled')
    assert.equal(failure.code, 'run_cancelled')
    setWorkflowEngineResolver(() => engineEnding({ status: 'dead' }))
    assert.containSubset(await failureOf(Order.start({ id: 1 })), { code: 'run_dead' })
  })

  test('a start that the engine refuses rejects', async ({ assert }) => {
    const engine = engineEnding({ status: 'completed' })
    engine.start = async () => {
      throw new Error('refused')
    }
    setWorkflowEngineResolver(() => engine)
    await assert.rejects(() => Order.start({ id: 1 }), 'refused')
    await assert.rejects(() => Order.dispatch({ id: 1 }), 'refused')
    assert.deepEqual(engine.calls, [])
  })

  test('a class without static workflow is refused', async ({ assert }) => {
    const engine = engineEnding({ status: 'completed' })
    setWorkflowEngineResolver(() => engine)
    assert.instanceOf(await failureOf(Nameless.start()), InvalidArgumentError)
    assert.instanceOf(await failureOf(Nameless.dispatch()), InvalidArgumentError)
    assert.deepEqual(engine.calls, [])
  })
})

test.group('BaseWorkflow | inside a body', (group) => {
  group.each.setup(() => {
    setWorkflowEngineResolver(() => {
      throw new Error('the engine must not be asked')
    })
    return emptySlots
  })

  test('start and dispatch become children, called at once', async ({ assert }) => {
    const { ctx, calls } = ctxWithChildren()
    await runInWorkflowScope(ctx, async () => {
      const first = Order.start({ id: 1 })
      const second = Order.dispatch({ id: 2 })
      assert.deepEqual(calls, [
        ['child', Order, { id: 1 }, undefined],
        ['startChild', Order, { id: 2 }, undefined],
      ])
      assert.deepEqual(await first, { total: 1 })
      await second
    })
  })

  test('run id and priority reach the child, the rest does not', async ({ assert }) => {
    const { ctx, calls } = ctxWithChildren(async () => 'child-1')
    await runInWorkflowScope(ctx, async () => {
      await Order.start({ id: 1 }, { runId: 'child-1', tags: ['x'], version: '2' })
      assert.deepEqual(
        await Order.dispatch({ id: 2 }, { runId: 'child-1', priority: 0, namespace: 'n' }),
        { runId: 'child-1' }
      )
      await Order.dispatch({ id: 3 }, { priority: 3 })
    })
    assert.deepEqual(calls, [
      ['child', Order, { id: 1 }, { childId: 'child-1' }],
      ['startChild', Order, { id: 2 }, { childId: 'child-1', priority: 0 }],
      ['startChild', Order, { id: 3 }, { priority: 3 }],
    ])
  })

  test('a promise that the body drops never surfaces as unhandled', async ({ assert }) => {
    const unhandled: unknown[] = []
    const listener = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', listener)
    try {
      const { ctx } = ctxWithChildren(() => Promise.reject(new Error('suspended')))
      runInWorkflowScope(ctx, () => {
        void Order.start({ id: 1 })
        void Order.dispatch({ id: 2 })
      })
      await setImmediate()
      await setImmediate()
    } finally {
      process.off('unhandledRejection', listener)
    }
    assert.deepEqual(unhandled, [])
  })

  test('what the ctx throws reaches the body untouched', async ({ assert }) => {
    const signal = new Error('suspended')
    const { ctx } = ctxWithChildren(() => Promise.reject(signal))
    const failures = await runInWorkflowScope(ctx, () =>
      Promise.all([failureOf(Order.start({ id: 1 })), failureOf(Order.dispatch({ id: 1 }))])
    )
    assert.deepEqual(
      failures.map((failure) => failure === (signal as Error)),
      [true, true]
    )
  })

  test('inside a step body both are refused before anything happens', async ({ assert }) => {
    const { ctx, calls } = ctxWithChildren()
    const inStep = <T>(fn: () => T) => runInStepBody({ runId: 'parent', step: 'charge' }, fn)
    const failures = [
      await runInWorkflowScope(ctx, () => inStep(() => failureOf(Order.start({ id: 1 })))),
      await runInWorkflowScope(ctx, () => inStep(() => failureOf(Order.dispatch({ id: 1 })))),
      // A step body is run by its driver, on whose path the body's ctx need not be.
      await inStep(() => failureOf(Order.start({ id: 1 }))),
    ]
    for (const failure of failures) {
      assert.instanceOf(failure, NestedWorkflowCallError)
      assert.containSubset(failure, { runId: 'parent', step: 'charge' })
    }
    assert.deepEqual(
      failures.map(({ primitive }) => primitive),
      ['child', 'startChild', 'child']
    )
    assert.deepEqual(calls, [])
  })
})

test.group('Engine resolver', (group) => {
  group.each.setup(emptySlots)
  group.each.teardown(emptySlots)

  test('the override wins over the default, and undefined restores it', async ({ assert }) => {
    const [ours, theirs] = [
      engineEnding({ status: 'completed' }),
      engineEnding({ status: 'completed' }),
    ]
    setDefaultWorkflowEngineResolver(() => ours)
    assert.strictEqual(await resolveWorkflowEngine(), ours)
    setWorkflowEngineResolver(async () => theirs)
    assert.strictEqual(await resolveWorkflowEngine(), theirs)
    setWorkflowEngineResolver(undefined)
    assert.strictEqual(await resolveWorkflowEngine(), ours)
  })

  test('without an engine the error says what to do', async ({ assert }) => {
    const failures = [await failureOf(Order.start({ id: 1 }))]
    setWorkflowEngineResolver(() => undefined as never)
    failures.push(await failureOf(Order.dispatch({ id: 1 })))
    for (const failure of failures) {
      assert.equal(failure.code, 'no_engine')
      assert.include(failure.message, '@adonis-agora/durable/durable_provider')
      assert.include(failure.message, 'setWorkflowEngineResolver')
    }
  })

  test('a resolver that fails passes its error on', async ({ assert }) => {
    setWorkflowEngineResolver(() => Promise.reject(new Error('not booted')))
    await assert.rejects(() => Order.dispatch({ id: 1 }), 'not booted')
  })

  test('copies of the package share the slots', async ({ assert }) => {
    const copy = '../../src/authoring/engine_resolver.ts?copy=resolver'
    const other = (await import(copy)) as typeof resolvers
    assert.notStrictEqual(other.resolveWorkflowEngine, resolveWorkflowEngine)
    const engine = engineEnding({ status: 'completed', output: { total: 3 } })
    other.setDefaultWorkflowEngineResolver(() => engine)
    assert.deepEqual(await Order.start({ id: 3 }), { total: 3 })
    other.setWorkflowEngineResolver(() => engineEnding({ status: 'dead' }))
    assert.containSubset(await failureOf(Order.start({ id: 3 })), { code: 'run_dead' })
  })
})
