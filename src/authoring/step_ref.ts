/*
 * Step references: what `@Step` and `defineStep` stamp on a function, how it is read back, and how a
 * call's options override the declared policy. The stamps are registry symbols, so a reference made by
 * another copy of the package reads the same.
 */
import { InvalidArgumentError } from '../errors.ts'
import { keyProblem, MAX_NAME_BYTES } from '../foundation/keys.ts'
import {
  DURABLE_STEP_CONFIG,
  DURABLE_STEP_META,
  DURABLE_STEP_NAME,
  type StepConfig,
  type StepDecoratorOptions,
  type StepRef,
  type StepSchemas,
} from '../types/step.ts'
import { checkOptions, OPTIONS } from './options.ts'
import { requireStandardSchema } from './validate_standard.ts'

/** The routing name stamped on a step reference; `undefined` for anything else. */
export function stepNameOf(ref: unknown): string | undefined {
  const name = stampsOf(ref)?.[DURABLE_STEP_NAME]
  return typeof name === 'string' ? name : undefined
}

/** The dispatch policy declared on a step reference; `undefined` when it declares none. */
export function stepConfigOf(ref: unknown): StepConfig | undefined {
  return stampsOf(ref)?.[DURABLE_STEP_CONFIG]
}

/** The schemas declared on a step reference; `undefined` when it declares none. */
export function stepSchemasOf(ref: unknown): StepSchemas | undefined {
  return stampsOf(ref)?.[DURABLE_STEP_META]
}

/** The declared policy with a call's options over it, field by field; an `undefined` overrides nothing. */
export function mergePolicy<Options extends StepConfig>(
  declared: StepConfig | undefined,
  perCall: Options | undefined
): StepConfig & Partial<Options> {
  return { ...defined(declared), ...defined(perCall) }
}

/** Stamps a step's name, policy and schemas on its function. Throws `InvalidArgumentError`. */
export function stampStep(
  fn: object,
  name: string,
  options: Omit<StepDecoratorOptions, 'name'>
): void {
  const problem = keyProblem(name, MAX_NAME_BYTES)
  if (problem) throw new InvalidArgumentError('the name of a step', problem)
  checkOptions(`step "${name}"`, options, OPTIONS.declaredStep)
  const { input, output, ...policy } = options
  const schemas = defined({
    input: requireStandardSchema(input, `the input schema of step "${name}"`),
    output: requireStandardSchema(output, `the output schema of step "${name}"`),
  })
  const config = defined(policy)
  stamp(fn, DURABLE_STEP_NAME, name)
  stamp(fn, DURABLE_STEP_CONFIG, isEmpty(config) ? undefined : Object.freeze(config))
  stamp(fn, DURABLE_STEP_META, isEmpty(schemas) ? undefined : Object.freeze(schemas))
}

/** Not enumerable: a reference that is logged or spread stays what it was. */
function stamp(fn: object, symbol: symbol, value: unknown): void {
  Object.defineProperty(fn, symbol, { value, configurable: true, writable: true })
}

function stampsOf(ref: unknown): Partial<StepRef> | undefined {
  return typeof ref === 'function' ? (ref as Partial<StepRef>) : undefined
}

function defined<T extends object>(values: T | undefined): Partial<T> {
  return Object.fromEntries(
    Object.entries(values ?? {}).filter(([, value]) => value !== undefined)
  ) as Partial<T>
}

const isEmpty = (value: object): boolean => Object.keys(value).length === 0
