/*
 * What the compiler knows of steps. The bodies of these tests are checked, not run: `tsc` fails on a
 * wrong inference and on an `@ts-expect-error` that expects none.
 */
import { test } from '@japa/runner'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { defineStep, Step } from '../../src/authoring/step.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { StepDecoratorOptions, StepLogger, StepRef, UndoOf } from '../../src/types/step.ts'

interface Booking {
  id: string
}

class FlightService {
  @Step()
  async book(input: { flight: string; seats?: number }): Promise<Booking> {
    return { id: input.flight }
  }

  @Step({ name: 'flight:cancel', retries: 5 })
  async cancel(undo: UndoOf<FlightService['book']>, log: StepLogger) {
    log.info(undo.output.id, undo.input.flight)
  }

  @Step('flight:count')
  count(input: { day: string }) {
    return input.day.length
  }

  @Step()
  async cancelCount(_undo: UndoOf<FlightService['count']>) {}

  @Step()
  async ping() {
    return 'pong' as const
  }
}

const flights = FlightService.prototype

/** Never called: only its types matter. */
const notRun = (_body: (ctx: WorkflowCtx) => unknown) => {}

test.group('Types | ctx.step', () => {
  test('a method reference gives input and output', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      expectTypeOf(await ctx.step(flights.book, { flight: 'X1' })).toEqualTypeOf<Booking>()
      expectTypeOf(await ctx.step(flights.count, { day: 'today' })).toEqualTypeOf<number>()
      expectTypeOf(await ctx.step(flights.ping, undefined)).toEqualTypeOf<'pong'>()
      // @ts-expect-error -- the flight is missing
      await ctx.step(flights.book, {})
      // @ts-expect-error -- the flight is no number
      await ctx.step(flights.book, { flight: 1 })
      // @ts-expect-error -- there is no such input
      await ctx.step(flights.book, { flight: 'X1', gate: 2 })
    })
  })

  test('a name gives what the caller says, unknown by default', ({ expectTypeOf }) => {
    notRun(async (ctx) => {
      expectTypeOf(await ctx.step('py:score', { id: 1 })).toBeUnknown()
      expectTypeOf(await ctx.step<number>('py:score', { id: 1 })).toEqualTypeOf<number>()
      await ctx.step<Booking>('py:book', 1, { compensate: 'py:cancel', timeoutMs: 5_000 })
      await ctx.step<Booking>('py:book', 1, { compensate: flights.cancel })
      // @ts-expect-error -- the undo reads a number where the step answers a booking
      await ctx.step<Booking>('py:book', 1, { compensate: flights.cancelCount })
    })
  })

  test('the undo must fit the step it undoes', ({ expectTypeOf }) => {
    expectTypeOf<UndoOf<FlightService['book']>>().toEqualTypeOf<{
      input: { flight: string; seats?: number }
      output: Booking
    }>()
    notRun(async (ctx) => {
      await ctx.step(flights.book, { flight: 'X1' }, { compensate: flights.cancel, retries: 2 })
      await ctx.step(flights.book, { flight: 'X1' }, { compensate: 'flight:cancel', queue: 'q' })
      // @ts-expect-error -- this undo belongs to another step
      await ctx.step(flights.book, { flight: 'X1' }, { compensate: flights.cancelCount })
      // @ts-expect-error -- an undo takes `{ input, output }`, not the input
      await ctx.step(flights.book, { flight: 'X1' }, { compensate: flights.book })
    })
  })

  test('options are those of a dispatch', () => {
    notRun(async (ctx) => {
      await ctx.step(flights.ping, undefined, { fairnessKey: 'a', priority: 1, transport: 'fast' })
      await ctx.step(flights.ping, undefined, { queue: 'q', timeoutMs: 1, pickupTimeoutMs: 2 })
      // @ts-expect-error -- a fan has a concurrency of its own
      await ctx.all(flights.ping, [], { queue: 'q' })
      // @ts-expect-error -- there is no such backoff
      await ctx.step(flights.ping, undefined, { backoff: 'linear' })
      // @ts-expect-error -- a plain value is no step
      await ctx.step({ name: 'x' }, undefined)
    })
  })
})

test.group('Types | defineStep', () => {
  test('without schemas the annotations are the types', ({ expectTypeOf }) => {
    const sum = defineStep('sum', (input: { a: number; b: number }) => input.a + input.b)
    expectTypeOf(sum).toEqualTypeOf<StepRef<{ a: number; b: number }, number>>()
    const later = defineStep('later', async (input: string, log) => {
      expectTypeOf(log).toEqualTypeOf<StepLogger>()
      return input.length
    })
    expectTypeOf(later).toEqualTypeOf<StepRef<string, number>>()
    const told = defineStep<{ a: number }, string>('told', (input) => String(input.a), {
      retries: 2,
      input: z.object({ a: z.number() }),
    })
    expectTypeOf(told).toEqualTypeOf<StepRef<{ a: number }, string>>()
    const config: Omit<StepDecoratorOptions, 'name'> = { retries: 2 }
    expectTypeOf(defineStep('c', (n: number) => n, config)).toEqualTypeOf<StepRef<number, number>>()
    notRun(async (ctx) => {
      expectTypeOf(await ctx.step(sum, { a: 1, b: 2 })).toEqualTypeOf<number>()
      // @ts-expect-error -- b is missing
      await ctx.step(sum, { a: 1 })
      // @ts-expect-error -- a name belongs in the first argument
      defineStep('x', () => 1, { name: 'y' })
    })
  })

  test('zod: an unannotated handler takes the types of the schemas', ({ expectTypeOf }) => {
    const step = defineStep(
      'zod',
      async (input, log) => {
        expectTypeOf(input).toEqualTypeOf<{ amount: number; note: string }>()
        expectTypeOf(log).toEqualTypeOf<StepLogger>()
        return { cents: String(input.amount) }
      },
      {
        input: z.object({ amount: z.string().transform(Number), note: z.string().default('') }),
        output: z.object({ cents: z.string().transform(Number) }),
        retries: 2,
      }
    )
    expectTypeOf(step).toEqualTypeOf<
      StepRef<{ amount: string; note?: string | undefined }, { cents: number }>
    >()
    const inputOnly = defineStep('zod-in', (input) => input.amount > 1, {
      input: z.object({ amount: z.number() }),
    })
    expectTypeOf(inputOnly).toEqualTypeOf<StepRef<{ amount: number }, boolean>>()
    const outputOnly = defineStep('zod-out', (input: string) => input, {
      output: z.string().transform((text) => text.length),
    })
    expectTypeOf(outputOnly).toEqualTypeOf<StepRef<string, number>>()
  })

  test('valibot: an unannotated handler takes the types of the schemas', ({ expectTypeOf }) => {
    const step = defineStep(
      'valibot',
      async (input) => {
        expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
        return { cents: input.amount * 100 }
      },
      {
        input: v.object({ amount: v.pipe(v.string(), v.transform(Number)) }),
        output: v.object({ cents: v.number() }),
      }
    )
    expectTypeOf(step).toEqualTypeOf<StepRef<{ amount: string }, { cents: number }>>()
  })

  test('arktype: an unannotated handler takes the types of the schemas', ({ expectTypeOf }) => {
    const step = defineStep(
      'arktype',
      async (input) => {
        expectTypeOf(input).toEqualTypeOf<{ amount: number }>()
        return { cents: input.amount * 100 }
      },
      {
        input: type({ amount: 'string.numeric.parse' }),
        output: type({ cents: 'number' }),
      }
    )
    expectTypeOf(step).toEqualTypeOf<StepRef<{ amount: string }, { cents: number }>>()
  })

  test('an annotated handler must agree with its schemas', ({ expectTypeOf }) => {
    const annotated = defineStep('a', async (input: { amount: number }) => input.amount, {
      input: z.object({ amount: z.string().transform(Number) }),
    })
    expectTypeOf(annotated).toEqualTypeOf<StepRef<{ amount: string }, number>>()
    const both = defineStep('b', (input: { n: number }): string => String(input.n), {
      input: v.object({ n: v.number() }),
      output: v.string(),
    })
    expectTypeOf(both).toEqualTypeOf<StepRef<{ n: number }, string>>()

    notRun(() => {
      // @ts-expect-error -- the handler wants a string where the schema answers a number
      defineStep('c', (input: { n: string }) => input.n, { input: z.object({ n: z.number() }) })
      // @ts-expect-error -- the handler answers a number where the schema wants a string
      defineStep('d', () => 1, { output: z.string() })
      const io = { input: z.object({ n: z.number() }), output: z.string() }
      // @ts-expect-error -- the same, unannotated
      defineStep('e', (input) => input.n, io)
      // @ts-expect-error -- a plain object is no schema
      defineStep('f', (input: number) => input, { input: { n: 'number' } })
    })
  })
})

test.group('Types | @Step', () => {
  test('takes a name, options or nothing', () => {
    notRun(() => {
      Step()
      Step('custom:name')
      Step({ input: z.string(), output: v.number(), jitter: true, requires: ['gpu'] })
      // @ts-expect-error -- there is no such option
      Step({ retry: 3 })
      // @ts-expect-error -- a plain object is no schema
      Step({ input: { amount: 'number' } })
    })
  })
})
