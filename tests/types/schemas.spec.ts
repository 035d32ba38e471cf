/*
 * What the compiler infers of steps, undos, children, fans and search attributes that are declared through
 * a schema library, the same for each of them. The bodies are checked, not run.
 */
import { test } from '@japa/runner'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import {
  attributesOf,
  type InferSearchAttributes,
  readSearchAttributes,
} from '../../src/authoring/search_attributes.ts'
import { defineStep } from '../../src/authoring/step.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { Settled } from '../../src/types/fan.ts'
import type { StepUndo, UndoOf } from '../../src/types/step.ts'

const notRun = (_body: (ctx: WorkflowCtx) => unknown) => {}

const zodOrder = z.object({ id: z.string() })
const zodAttributes = z.object({
  stage: z.enum(['packed', 'sent']),
  parcels: z.number().optional(),
})
const zodBook = defineStep('book', (input) => ({ cents: input.amount * 100 }), {
  input: z.object({ amount: z.string().transform(Number) }),
  output: z.object({ cents: z.number() }),
})
const zodUnbook = defineStep('unbook', (_undo: UndoOf<typeof zodBook>) => {})

class ZodWorkflow extends BaseWorkflow {
  static override workflow = {
    name: 'zod',
    inputSchema: zodOrder,
    searchAttributes: zodAttributes,
  }

  async run(
    ctx: WorkflowCtx<InferSearchAttributes<typeof zodAttributes>>,
    input: z.infer<typeof zodOrder>
  ) {
    await ctx.upsertSearchAttributes({ stage: 'sent' })
    // @ts-expect-error -- no such stage
    await ctx.upsertSearchAttributes({ stage: 'lost' })
    // @ts-expect-error -- a number
    await ctx.upsertSearchAttributes({ parcels: 'two' })
    return { weight: input.id.length }
  }
}

const valibotOrder = v.object({ id: v.string() })
const valibotAttributes = v.object({
  stage: v.picklist(['packed', 'sent']),
  parcels: v.optional(v.number()),
})
const valibotBook = defineStep('book', (input) => ({ cents: input.amount * 100 }), {
  input: v.object({ amount: v.pipe(v.string(), v.transform(Number)) }),
  output: v.object({ cents: v.number() }),
})
const valibotUnbook = defineStep('unbook', (_undo: UndoOf<typeof valibotBook>) => {})

class ValibotWorkflow extends BaseWorkflow {
  static override workflow = {
    name: 'valibot',
    inputSchema: valibotOrder,
    searchAttributes: valibotAttributes,
  }

  async run(
    ctx: WorkflowCtx<InferSearchAttributes<typeof valibotAttributes>>,
    input: v.InferOutput<typeof valibotOrder>
  ) {
    await ctx.upsertSearchAttributes({ stage: 'sent' })
    // @ts-expect-error -- no such stage
    await ctx.upsertSearchAttributes({ stage: 'lost' })
    // @ts-expect-error -- a number
    await ctx.upsertSearchAttributes({ parcels: 'two' })
    return { weight: input.id.length }
  }
}

const arktypeOrder = type({ id: 'string' })
const arktypeAttributes = type({ 'stage': "'packed' | 'sent'", 'parcels?': 'number' })
const arktypeBook = defineStep('book', (input) => ({ cents: input.amount * 100 }), {
  input: type({ amount: 'string.numeric.parse' }),
  output: type({ cents: 'number' }),
})
const arktypeUnbook = defineStep('unbook', (_undo: UndoOf<typeof arktypeBook>) => {})

class ArktypeWorkflow extends BaseWorkflow {
  static override workflow = {
    name: 'arktype',
    inputSchema: arktypeOrder,
    searchAttributes: arktypeAttributes,
  }

  async run(
    ctx: WorkflowCtx<InferSearchAttributes<typeof arktypeAttributes>>,
    input: typeof arktypeOrder.infer
  ) {
    await ctx.upsertSearchAttributes({ stage: 'sent' })
    // @ts-expect-error -- no such stage
    await ctx.upsertSearchAttributes({ stage: 'lost' })
    // @ts-expect-error -- a number
    await ctx.upsertSearchAttributes({ parcels: 'two' })
    return { weight: input.id.length }
  }
}

interface Weight {
  weight: number
}

test.group('Types | zod', () => {
  test('steps, their undos and fans over them', ({ expectTypeOf }) => {
    expectTypeOf<UndoOf<typeof zodBook>>().toEqualTypeOf<
      StepUndo<{ amount: string }, { cents: number }>
    >()
    notRun(async (ctx) => {
      const one = await ctx.step(zodBook, { amount: '7' }, { compensate: zodUnbook })
      expectTypeOf(one).toEqualTypeOf<{ cents: number }>()
      // @ts-expect-error -- the schema takes a string
      await ctx.step(zodBook, { amount: 7 })
      // @ts-expect-error -- it undoes another step
      await ctx.step(zodBook, { amount: '7' }, { compensate: zodBook })
      const all = await ctx.all(zodBook, [{ amount: '7' }])
      expectTypeOf(all).toEqualTypeOf<{ cents: number }[]>()
      // @ts-expect-error -- the schema takes a string
      await ctx.all(zodBook, [{ amount: 7 }])
      const settled = await ctx.allSettled(zodBook, [{ amount: '7' }])
      expectTypeOf(settled).toEqualTypeOf<Settled<{ cents: number }>[]>()
      // @ts-expect-error -- the schema takes a string
      await ctx.allSettled(zodBook, [{ amount: 7 }])
    })
  })

  test('children and fans over them', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      expectTypeOf(await ctx.child(ZodWorkflow, { id: '7' })).toEqualTypeOf<Weight>()
      expectTypeOf(await ctx.startChild(ZodWorkflow, { id: '7' })).toEqualTypeOf<string>()
      expectTypeOf(await ctx.all(ZodWorkflow, [{ id: '7' }])).toEqualTypeOf<Weight[]>()
      const settled = await ctx.allSettled(ZodWorkflow, [{ id: '7' }])
      expectTypeOf(settled).toEqualTypeOf<Settled<Weight>[]>()
      // @ts-expect-error -- the id is no number
      await ctx.child(ZodWorkflow, { id: 7 })
      // @ts-expect-error -- the id is no number
      await ctx.all(ZodWorkflow, [{ id: 7 }])
      // @ts-expect-error -- the id is no number
      await ctx.allSettled(ZodWorkflow, [{ id: 7 }])
    })
  })

  test('search attributes', ({ expectTypeOf }) => {
    const read = readSearchAttributes(zodAttributes, null)
    expectTypeOf(read).toEqualTypeOf<InferSearchAttributes<typeof zodAttributes>>()
    expectTypeOf(read.stage).toEqualTypeOf<'packed' | 'sent'>()
    expectTypeOf(read.parcels).toEqualTypeOf<number | undefined>()
    // @ts-expect-error -- no such attribute
    void read.weight
    const ofClass = attributesOf(ZodWorkflow, null)
    expectTypeOf(ofClass).toEqualTypeOf<InferSearchAttributes<typeof zodAttributes>>()
  })
})

test.group('Types | valibot', () => {
  test('steps, their undos and fans over them', ({ expectTypeOf }) => {
    expectTypeOf<UndoOf<typeof valibotBook>>().toEqualTypeOf<
      StepUndo<{ amount: string }, { cents: number }>
    >()
    notRun(async (ctx) => {
      const one = await ctx.step(valibotBook, { amount: '7' }, { compensate: valibotUnbook })
      expectTypeOf(one).toEqualTypeOf<{ cents: number }>()
      // @ts-expect-error -- the schema takes a string
      await ctx.step(valibotBook, { amount: 7 })
      // @ts-expect-error -- it undoes another step
      await ctx.step(valibotBook, { amount: '7' }, { compensate: valibotBook })
      const all = await ctx.all(valibotBook, [{ amount: '7' }])
      expectTypeOf(all).toEqualTypeOf<{ cents: number }[]>()
      // @ts-expect-error -- the schema takes a string
      await ctx.all(valibotBook, [{ amount: 7 }])
      const settled = await ctx.allSettled(valibotBook, [{ amount: '7' }])
      expectTypeOf(settled).toEqualTypeOf<Settled<{ cents: number }>[]>()
      // @ts-expect-error -- the schema takes a string
      await ctx.allSettled(valibotBook, [{ amount: 7 }])
    })
  })

  test('children and fans over them', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      expectTypeOf(await ctx.child(ValibotWorkflow, { id: '7' })).toEqualTypeOf<Weight>()
      expectTypeOf(await ctx.startChild(ValibotWorkflow, { id: '7' })).toEqualTypeOf<string>()
      expectTypeOf(await ctx.all(ValibotWorkflow, [{ id: '7' }])).toEqualTypeOf<Weight[]>()
      const settled = await ctx.allSettled(ValibotWorkflow, [{ id: '7' }])
      expectTypeOf(settled).toEqualTypeOf<Settled<Weight>[]>()
      // @ts-expect-error -- the id is no number
      await ctx.child(ValibotWorkflow, { id: 7 })
      // @ts-expect-error -- the id is no number
      await ctx.all(ValibotWorkflow, [{ id: 7 }])
      // @ts-expect-error -- the id is no number
      await ctx.allSettled(ValibotWorkflow, [{ id: 7 }])
    })
  })

  test('search attributes', ({ expectTypeOf }) => {
    const read = readSearchAttributes(valibotAttributes, null)
    expectTypeOf(read).toEqualTypeOf<InferSearchAttributes<typeof valibotAttributes>>()
    expectTypeOf(read.stage).toEqualTypeOf<'packed' | 'sent'>()
    expectTypeOf(read.parcels).toEqualTypeOf<number | undefined>()
    // @ts-expect-error -- no such attribute
    void read.weight
    const ofClass = attributesOf(ValibotWorkflow, null)
    expectTypeOf(ofClass).toEqualTypeOf<InferSearchAttributes<typeof valibotAttributes>>()
  })
})

test.group('Types | arktype', () => {
  test('steps, their undos and fans over them', ({ expectTypeOf }) => {
    expectTypeOf<UndoOf<typeof arktypeBook>>().toEqualTypeOf<
      StepUndo<{ amount: string }, { cents: number }>
    >()
    notRun(async (ctx) => {
      const one = await ctx.step(arktypeBook, { amount: '7' }, { compensate: arktypeUnbook })
      expectTypeOf(one).toEqualTypeOf<{ cents: number }>()
      // @ts-expect-error -- the schema takes a string
      await ctx.step(arktypeBook, { amount: 7 })
      // @ts-expect-error -- it undoes another step
      await ctx.step(arktypeBook, { amount: '7' }, { compensate: arktypeBook })
      const all = await ctx.all(arktypeBook, [{ amount: '7' }])
      expectTypeOf(all).toEqualTypeOf<{ cents: number }[]>()
      // @ts-expect-error -- the schema takes a string
      await ctx.all(arktypeBook, [{ amount: 7 }])
      const settled = await ctx.allSettled(arktypeBook, [{ amount: '7' }])
      expectTypeOf(settled).toEqualTypeOf<Settled<{ cents: number }>[]>()
      // @ts-expect-error -- the schema takes a string
      await ctx.allSettled(arktypeBook, [{ amount: 7 }])
    })
  })

  test('children and fans over them', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      expectTypeOf(await ctx.child(ArktypeWorkflow, { id: '7' })).toEqualTypeOf<Weight>()
      expectTypeOf(await ctx.startChild(ArktypeWorkflow, { id: '7' })).toEqualTypeOf<string>()
      expectTypeOf(await ctx.all(ArktypeWorkflow, [{ id: '7' }])).toEqualTypeOf<Weight[]>()
      const settled = await ctx.allSettled(ArktypeWorkflow, [{ id: '7' }])
      expectTypeOf(settled).toEqualTypeOf<Settled<Weight>[]>()
      // @ts-expect-error -- the id is no number
      await ctx.child(ArktypeWorkflow, { id: 7 })
      // @ts-expect-error -- the id is no number
      await ctx.all(ArktypeWorkflow, [{ id: 7 }])
      // @ts-expect-error -- the id is no number
      await ctx.allSettled(ArktypeWorkflow, [{ id: 7 }])
    })
  })

  test('search attributes', ({ expectTypeOf }) => {
    const read = readSearchAttributes(arktypeAttributes, null)
    expectTypeOf(read).toEqualTypeOf<InferSearchAttributes<typeof arktypeAttributes>>()
    expectTypeOf(read.stage).toEqualTypeOf<'packed' | 'sent'>()
    expectTypeOf(read.parcels).toEqualTypeOf<number | undefined>()
    // @ts-expect-error -- no such attribute
    void read.weight
    const ofClass = attributesOf(ArktypeWorkflow, null)
    expectTypeOf(ofClass).toEqualTypeOf<InferSearchAttributes<typeof arktypeAttributes>>()
  })
})
