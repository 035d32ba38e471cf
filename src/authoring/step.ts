/*
 * Step declarations: the `@Step` decorator for methods and `defineStep` for functions. Both only stamp a
 * function; discovery serves it, `ctx.step` dispatches to it.
 */
import { InvalidArgumentError } from '../errors.ts'
import type { InferInput, InferOutput, StandardSchemaV1 } from '../foundation/standard_schema.ts'
import type { StepConfig, StepDecoratorOptions, StepLogger, StepRef } from '../types/step.ts'
import { stampStep } from './step_ref.ts'

/**
 * Marks a method as a durable step handler: `@Step()` names it `${ClassName}.${method}`, `@Step('name')`
 * and `@Step({ name })` as given, which keeps the name when the class is renamed. Classes under
 * `app/steps` are served at boot. The other options are the step's dispatch policy, which `ctx.step`
 * overrides field by field, and its `input` and `output` schemas, enforced where the step is served.
 *
 * Throws `InvalidArgumentError` on anything but an instance method, for a name no store keeps and for a
 * schema that is none.
 */
export function Step(nameOrOptions: string | StepDecoratorOptions = {}): MethodDecorator {
  const { name, ...options } =
    typeof nameOrOptions === 'string' ? { name: nameOrOptions } : nameOrOptions
  return (target, key, descriptor) => {
    const method: unknown = descriptor?.value
    if (typeof method !== 'function' || typeof target === 'function') {
      throw new InvalidArgumentError(
        `@Step on ${String(key)}`,
        'decorates instance methods only, with `experimentalDecorators` as AdonisJS sets it'
      )
    }
    stampStep(method, name ?? `${target.constructor.name}.${String(key)}`, options)
  }
}

type Policy = Omit<StepDecoratorOptions, 'name'>
type Awaitable<T> = T | Promise<T>

/** Fails to match a schema whose type the handler's own annotation contradicts. */
type Agreeing<C, TInput, TOutput> = (C extends { input: StandardSchemaV1<unknown, infer I> }
  ? I extends TInput
    ? unknown
    : { input: StandardSchemaV1<unknown, TInput> }
  : unknown) &
  (C extends { output: StandardSchemaV1<infer O, unknown> }
    ? TOutput extends O
      ? unknown
      : { output: StandardSchemaV1<TOutput, unknown> }
    : unknown)

/**
 * Declares a step without a class. `ctx.step` takes the result; calling it runs `fn` directly, without
 * schemas. Export it from a module under `app/steps` to have it served at boot. `config` holds the
 * dispatch policy and the `input` and `output` schemas; where a schema is given, an unannotated handler
 * takes its types from it.
 *
 *     export const charge = defineStep('billing:charge', async (input) => input.amount * 100, {
 *       input: v.object({ amount: v.number() }),
 *       retries: 3,
 *     })
 *
 * Throws `InvalidArgumentError` for a name no store keeps and for a schema that is none.
 */
export function defineStep<I extends StandardSchemaV1, O extends StandardSchemaV1>(
  name: string,
  fn: (input: InferOutput<I>, log: StepLogger) => Awaitable<InferInput<O>>,
  config: StepConfig & { input: I; output: O }
): StepRef<InferInput<I>, InferOutput<O>>
export function defineStep<I extends StandardSchemaV1, TOutput>(
  name: string,
  fn: (input: InferOutput<I>, log: StepLogger) => Awaitable<TOutput>,
  config: StepConfig & { input: I; output?: undefined }
): StepRef<InferInput<I>, TOutput>
export function defineStep<TInput, O extends StandardSchemaV1>(
  name: string,
  fn: (input: TInput, log: StepLogger) => Awaitable<InferInput<O>>,
  config: StepConfig & { input?: undefined; output: O }
): StepRef<TInput, InferOutput<O>>
export function defineStep<TInput, TOutput, C extends Policy = Policy>(
  name: string,
  fn: (input: TInput, log: StepLogger) => Awaitable<TOutput>,
  config?: C & Agreeing<C, NoInfer<TInput>, NoInfer<TOutput>>
): StepRef<TInput, TOutput>
export function defineStep(
  name: string,
  fn: (input: never, log: StepLogger) => unknown,
  config: Policy = {}
): StepRef<never, unknown> {
  // Its own function: one handler may be declared under two names.
  const ref = (input: never, log: StepLogger) => fn(input, log)
  stampStep(ref, name, config)
  return ref as StepRef<never, unknown>
}
