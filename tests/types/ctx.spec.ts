/*
 * What the compiler knows of the primitives that take and answer application types. The bodies are
 * checked, not run.
 */
import { test } from '@japa/runner'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import { defineStep } from '../../src/authoring/step.ts'
import {
  attributesOf,
  type InferSearchAttributes,
  readSearchAttributes,
} from '../../src/authoring/search_attributes.ts'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { DurableWebhook, DynamicWorkflowCtx, WorkflowCtx } from '../../src/types/ctx.ts'
import type { Settled } from '../../src/types/fan.ts'
import type { StepUndo, UndoOf } from '../../src/types/step.ts'
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

class Parcel extends BaseWorkflow {
  static override workflow = { name: 'parcel' }

  async run(_ctx: WorkflowCtx, input: { id: string }) {
    return { weight: input.id.length }
  }
}

const weigh = defineStep('weigh', async (input: { id: string }) => input.id.length)
const unweigh = defineStep('unweigh', async (_undo: UndoOf<typeof weigh>) => {})

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

  test('children and fans answer what their workflow or step answers', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      expectTypeOf(await ctx.child(Parcel, { id: '7' })).toEqualTypeOf<{ weight: number }>()
      // @ts-expect-error -- the id is no number
      await ctx.child(Parcel, { id: 7 })
      expectTypeOf(await ctx.child<string>('by-name', 1)).toEqualTypeOf<string>()
      expectTypeOf(await ctx.child('by-name', 1)).toBeUnknown()
      expectTypeOf(await ctx.startChild(Parcel, { id: '7' }, 'p7')).toEqualTypeOf<string>()
      expectTypeOf(await ctx.all(Parcel, [{ id: '7' }])).toEqualTypeOf<{ weight: number }[]>()
      // @ts-expect-error -- the inputs are no parcels
      await ctx.all(Parcel, ['7'])
      expectTypeOf(await ctx.all(weigh, [{ id: '7' }], { retries: 2 })).toEqualTypeOf<number[]>()
      // @ts-expect-error -- not possible for a fan
      await ctx.all(weigh, [{ id: '7' }], { timeoutMs: 5 })
      expectTypeOf(await ctx.allSettled(weigh, [{ id: '7' }])).toEqualTypeOf<Settled<number>[]>()
      expectTypeOf(await ctx.allSettled(Parcel, [{ id: '7' }])).toEqualTypeOf<
        Settled<{ weight: number }>[]
      >()
      // @ts-expect-error -- a settled fan has no mode
      await ctx.allSettled(Parcel, [{ id: '7' }], { mode: 'failFast' })
    })
  })

  test('an undo is derived from the step it undoes', ({ expectTypeOf }) => {
    expectTypeOf<UndoOf<typeof weigh>>().toEqualTypeOf<StepUndo<{ id: string }, number>>()
    expectTypeOf<UndoOf<(input: 'a') => Promise<'b'>>>().toEqualTypeOf<StepUndo<'a', 'b'>>()
    notRun(async (ctx) => {
      await ctx.step(weigh, { id: '7' }, { compensate: unweigh })
      // @ts-expect-error -- it undoes another step
      await ctx.step(weigh, { id: '7' }, { compensate: weigh })
    })
  })

  test('search attributes of every schema library', ({ expectTypeOf }) => {
    const ofValibot = v.object({ stage: v.picklist(['a', 'b']), n: v.optional(v.number()) })
    const ofArktype = type({ 'stage': "'a' | 'b'", 'n?': 'number' })
    type Wanted = { stage: 'a' | 'b'; n?: number | undefined }
    expectTypeOf<InferSearchAttributes<typeof ofValibot>>().toExtend<Wanted>()
    expectTypeOf<InferSearchAttributes<typeof ofArktype>>().toExtend<Wanted>()
    expectTypeOf(readSearchAttributes(ofValibot, null).stage).toEqualTypeOf<'a' | 'b'>()
    expectTypeOf(readSearchAttributes(ofArktype, null).stage).toEqualTypeOf<'a' | 'b'>()
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
