/*
 * What the compiler knows of workflow classes and of the other ctx primitives. The bodies of these tests
 * are checked, not run: `tsc` fails on a wrong inference and on an `@ts-expect-error` that expects none.
 */
import { test } from '@japa/runner'
import { z } from 'zod'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import type { WorkflowEngineResolver } from '../../src/authoring/engine_resolver.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { StepLogger } from '../../src/types/step.ts'
import type {
  WorkflowClass,
  WorkflowDispatchOptions,
  WorkflowInputOf,
  WorkflowOptions,
  WorkflowOutputOf,
  WorkflowRef,
} from '../../src/types/workflow.ts'

interface Order {
  orderId: string
  lines?: number[]
}

class OrderWorkflow extends BaseWorkflow {
  static override workflow = { name: 'order', version: '2', tags: ['shop'] }

  async run(_ctx: WorkflowCtx, input: Order) {
    return { total: input.lines?.length ?? 0 }
  }
}

class SyncWorkflow extends BaseWorkflow {
  static override workflow = {
    name: 'sync',
    singleton: { key: (input: { shop: string }) => `shop:${input.shop}`, limit: 2 },
    concurrency: { key: () => undefined, limit: 3 },
    onError: [{ code: 'declined', workflow: OrderWorkflow }, { workflow: 'by-name' }],
    deadLetterWorkflow: OrderWorkflow,
    inputSchema: z.object({ shop: z.string() }),
  }

  constructor(readonly clock: { now(): number }) {
    super()
  }

  run(_ctx: WorkflowCtx, input: { shop: string }): string {
    return input.shop
  }
}

class PingWorkflow extends BaseWorkflow {
  static override workflow: WorkflowOptions = { name: 'ping' }

  async run(_ctx: WorkflowCtx) {}
}

class MaybeWorkflow extends BaseWorkflow {
  static override workflow = { name: 'maybe' }

  async run(_ctx: WorkflowCtx, input?: Order): Promise<Order | null> {
    return input ?? null
  }
}

class PlainWorkflow {
  static workflow = { name: 'plain' }

  async run(_ctx: WorkflowCtx, input: number) {
    return input > 1
  }
}

const notRun = (_body: (ctx: WorkflowCtx) => unknown) => {}

test.group('Types | workflow classes', () => {
  test('input and output come from run', ({ expectTypeOf }) => {
    expectTypeOf<WorkflowInputOf<typeof OrderWorkflow>>().toEqualTypeOf<Order>()
    expectTypeOf<WorkflowOutputOf<typeof OrderWorkflow>>().toEqualTypeOf<{ total: number }>()
    expectTypeOf<WorkflowInputOf<typeof SyncWorkflow>>().toEqualTypeOf<{ shop: string }>()
    expectTypeOf<WorkflowOutputOf<typeof SyncWorkflow>>().toEqualTypeOf<string>()
    expectTypeOf<WorkflowInputOf<typeof PingWorkflow>>().toBeUnknown()
    expectTypeOf<WorkflowOutputOf<typeof PingWorkflow>>().toEqualTypeOf<void>()
    expectTypeOf<WorkflowInputOf<typeof MaybeWorkflow>>().toEqualTypeOf<Order | undefined>()
    expectTypeOf<WorkflowOutputOf<typeof MaybeWorkflow>>().toEqualTypeOf<Order | null>()
    expectTypeOf<WorkflowInputOf<typeof PlainWorkflow>>().toEqualTypeOf<number>()
    expectTypeOf<WorkflowOutputOf<typeof PlainWorkflow>>().toEqualTypeOf<boolean>()
  })

  test('every workflow class is a WorkflowClass and a reference', ({ expectTypeOf }) => {
    expectTypeOf(OrderWorkflow).toExtend<WorkflowClass>()
    expectTypeOf(SyncWorkflow).toExtend<WorkflowRef>()
    expectTypeOf(PlainWorkflow).toExtend<WorkflowRef>()
    expectTypeOf<'order'>().toExtend<WorkflowRef>()
    expectTypeOf<typeof BaseWorkflow>().not.toExtend<WorkflowClass>()
    expectTypeOf<{ run(): void }>().not.toExtend<WorkflowRef>()
  })

  test('start answers the output', ({ expectTypeOf }) => {
    notRun(async () => {
      expectTypeOf(await OrderWorkflow.start({ orderId: '7' })).toEqualTypeOf<{ total: number }>()
      expectTypeOf(await SyncWorkflow.start({ shop: 'a' })).toEqualTypeOf<string>()
      expectTypeOf(await MaybeWorkflow.start({ orderId: '7' })).toEqualTypeOf<Order | null>()
    })
  })

  test('dispatch answers the run id', ({ expectTypeOf }) => {
    notRun(async () => {
      const handle = await OrderWorkflow.dispatch({ orderId: '7' }, { runId: 'r', tags: ['x'] })
      expectTypeOf(handle).toEqualTypeOf<{ runId: string }>()
    })
    expectTypeOf<WorkflowDispatchOptions>().toHaveProperty('runId')
  })

  test('the input is checked, and may be left out only where run takes none', () => {
    notRun(async () => {
      await PingWorkflow.start()
      await PingWorkflow.dispatch(undefined, { runId: 'ping' })
      await MaybeWorkflow.dispatch()
      // @ts-expect-error -- the order is missing
      await OrderWorkflow.start()
      // @ts-expect-error -- the id is no number
      await OrderWorkflow.start({ orderId: 7 })
      // @ts-expect-error -- there is no such input
      await OrderWorkflow.dispatch({ orderId: '7', note: 'x' })
      // @ts-expect-error -- there is no such option
      await OrderWorkflow.dispatch({ orderId: '7' }, { id: 'x' })
      // @ts-expect-error -- the base class is no workflow
      await BaseWorkflow.start({})
    })
  })

  test('static workflow is checked against the options', () => {
    notRun(() => {
      // @ts-expect-error -- the name is missing
      return class extends BaseWorkflow {
        static override workflow = { version: '1' }
        run() {}
      }
    })
    notRun(() => {
      // @ts-expect-error -- versions are strings
      return class extends BaseWorkflow {
        static override workflow = { name: 'x', version: 1 }
        run() {}
      }
    })
  })

  test('a resolver may be synchronous or not', ({ expectTypeOf }) => {
    const engine = {
      start: async (_workflow: string, _input: unknown, runId: string) => ({
        runId,
        status: 'pending' as const,
      }),
      waitForRun: async (runId: string) => ({ runId, status: 'completed' as const }),
    }
    const resolver = () => engine
    expectTypeOf(resolver).toExtend<WorkflowEngineResolver>()
    const later = async () => engine
    expectTypeOf(later).toExtend<WorkflowEngineResolver>()
  })
})

test.group('Types | ctx', () => {
  test('localStep answers what its body answers', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      const count = await ctx.localStep('count', async (log) => {
        expectTypeOf(log).toEqualTypeOf<StepLogger>()
        return 1
      })
      expectTypeOf(count).toEqualTypeOf<number>()
      const now = await ctx.localStep('sync', () => 'x', { compensate: () => {}, retries: 2 })
      expectTypeOf(now).toEqualTypeOf<string>()
      // @ts-expect-error -- an in-process undo is a function
      await ctx.localStep('undo', () => 1, { compensate: 'name' })
      // @ts-expect-error -- a local step is not dispatched
      await ctx.localStep('queue', () => 1, { queue: 'q' })
    })
  })

  test('transaction and sideEffect answer what their functions answer', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      const saved = await ctx.transaction('save', async (tx) => {
        expectTypeOf(tx).toBeUnknown()
        return { id: 1 }
      })
      expectTypeOf(saved).toEqualTypeOf<{ id: number }>()
      expectTypeOf(await ctx.sideEffect(() => 1)).toEqualTypeOf<number>()
      expectTypeOf(await ctx.sideEffect(async () => ['a'])).toEqualTypeOf<string[]>()
    })
  })

  test('waitForSignal answers what the caller says', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      expectTypeOf(await ctx.waitForSignal('a')).toBeUnknown()
      const approval = await ctx.waitForSignal<{ ok: boolean }>('b', { timeoutMs: 1_000 })
      expectTypeOf(approval).toEqualTypeOf<{ ok: boolean }>()
      // @ts-expect-error -- the timeout is in milliseconds
      await ctx.waitForSignal('c', { timeout: '1s' })
    })
  })

  test('the remaining primitives', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      expectTypeOf(ctx.runId).toEqualTypeOf<string>()
      expectTypeOf(await ctx.now()).toEqualTypeOf<number>()
      expectTypeOf(await ctx.sleep('2 days')).toEqualTypeOf<void>()
      expectTypeOf(await ctx.sleepUntil(new Date(0))).toEqualTypeOf<void>()
      expectTypeOf(await ctx.patched('p')).toEqualTypeOf<boolean>()
      expectTypeOf(await ctx.setEvent('k', { a: 1 })).toEqualTypeOf<void>()
      expectTypeOf(ctx.continueAsNew({ page: 2 })).toEqualTypeOf<Promise<never>>()
      // @ts-expect-error -- the id of a run never changes
      ctx.runId = 'x'
    })
  })
})
