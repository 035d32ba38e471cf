/*
 * What the compiler knows of the primitives that take and answer application types. The bodies are
 * checked, not run.
 */
import { test } from '@japa/runner'
import { z } from 'zod'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import {
  attributesOf,
  type InferSearchAttributes,
  readSearchAttributes,
} from '../../src/authoring/search_attributes.ts'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { DurableWebhook, DynamicWorkflowCtx, WorkflowCtx } from '../../src/types/ctx.ts'
import type { SearchAttributes, WorkflowRun } from '../../src/types/run.ts'

const attributes = z.object({ stage: z.enum(['packed', 'sent']), parcels: z.number().optional() })
type Attributes = InferSearchAttributes<typeof attributes>

class Shipment extends BaseWorkflow {
  static override workflow = { name: 'shipment', searchAttributes: attributes }

  async run(ctx: WorkflowCtx<Attributes>) {
    await ctx.upsertSearchAttributes({ parcels: 2 })
    // @ts-expect-error -- no such stage
    await ctx.upsertSearchAttributes({ stage: 'lost' })
    // @ts-expect-error -- no such attribute
    await ctx.upsertSearchAttributes({ weight: 1 })
  }
}

class Plain extends BaseWorkflow {
  static override workflow = { name: 'plain' }

  async run(_ctx: WorkflowCtx) {}
}

const notRun = (_body: (ctx: WorkflowCtx, engine: WorkflowEngine) => unknown) => {}

test.group('Types | ctx', () => {
  test('every ctx is a dynamic one', ({ expectTypeOf }) => {
    expectTypeOf<WorkflowCtx>().toExtend<DynamicWorkflowCtx>()
    expectTypeOf<WorkflowCtx>().toExtend<
      Pick<DynamicWorkflowCtx, 'runId' | 'localStep' | 'child' | 'all' | 'sleep'>
    >()
    expectTypeOf<DynamicWorkflowCtx['step']>().returns.toEqualTypeOf<Promise<unknown>>()
  })

  test('search attributes follow from the schema', ({ expectTypeOf }) => {
    const run = { searchAttributes: { stage: 'sent' } } as unknown as WorkflowRun
    expectTypeOf(attributesOf(Shipment, run)).toEqualTypeOf<Attributes>()
    expectTypeOf(readSearchAttributes(attributes, run)).toEqualTypeOf<Attributes>()
    expectTypeOf(attributesOf(Plain, run)).toEqualTypeOf<SearchAttributes>()
  })

  test('payloads, updates, tasks, webhooks and entities', ({ expectTypeOf }) => {
    notRun(async (ctx, engine) => {
      expectTypeOf(await ctx.waitForEvent<{ n: number }>('e')).toEqualTypeOf<{ n: number }>()
      expectTypeOf(await ctx.onUpdate<string>('u')).toEqualTypeOf<string>()
      expectTypeOf(await ctx.task<number>('t', async () => {})).toEqualTypeOf<number>()
      expectTypeOf(ctx.webhook<boolean>()).toEqualTypeOf<DurableWebhook<boolean>>()
      expectTypeOf(await ctx.webhook<boolean>().wait()).toEqualTypeOf<boolean>()
      expectTypeOf(await ctx.callEntity<string>('e', 'k', 'op')).toEqualTypeOf<string>()
      expectTypeOf(await engine.getEntityState<number>('e', 'k')).toEqualTypeOf<
        number | undefined
      >()
      engine.registerEntity<{ n: number }>('e', {
        initialState: () => ({ n: 0 }),
        handlers: { add: (state, by: number) => (state.n += by) },
      })
      engine.registerEntity<{ n: number }>('e', {
        // @ts-expect-error -- the state is another
        initialState: () => 'text',
        handlers: {},
      })
    })
  })
})

test.group('Search attributes that are read', () => {
  test('through a schema; what does not fit reads as nothing', ({ assert }) => {
    const of = (searchAttributes: SearchAttributes) => ({ searchAttributes }) as WorkflowRun
    assert.deepEqual(attributesOf(Shipment, of({ stage: 'sent', parcels: 2 })), {
      stage: 'sent',
      parcels: 2,
    })
    assert.deepEqual(attributesOf(Shipment, of({ stage: 'gone' })), {} as Attributes)
    assert.deepEqual(attributesOf(Shipment, null), {} as Attributes)
    assert.deepEqual(attributesOf(Plain, of({ any: 1 })), { any: 1 })
    assert.deepEqual(attributesOf(Plain, undefined), {})
    const slow = { '~standard': { version: 1, vendor: 'x', validate: async () => ({ value: 1 }) } }
    assert.throws(() => readSearchAttributes(slow as never, null), /synchronously/)
  })
})
