/*
 * Discovery of steps: finds `defineStep` handles and classes with `@Step` methods among exports, builds
 * one instance of each class and serves every step under its stamped name. Everything is collected and
 * built before the first step is served, so a failure serves nothing.
 */
import { DuplicateDiscoveryError } from '../errors.ts'
import type { DurableStepMeta, StepHandler, StepServer } from '../types/step.ts'
import { exportsOfBarrel, type Barrel } from './barrel.ts'
import { exportsUnder, type Constructor, type Exported, type InstanceFactory } from './discovery.ts'
import { servedHandler } from './served_handler.ts'
import { stepConfigOf, stepNameOf, stepSchemasOf } from './step_ref.ts'

/**
 * Imports every module under one or several directories and serves the steps they export: `defineStep`
 * handles and the `@Step` methods of classes, inherited ones included. Answers what is served, in order.
 * Which modules count is described at `registerWorkflowsFromDir`.
 *
 * `factory` builds the one instance of each class (default `new`). A class whose steps are all served by
 * a subclass found beside it is not built.
 *
 * Throws before anything is served: `DuplicateDiscoveryError` when one name has two handlers,
 * `DurableError` (`discovery_import`) for a module that cannot be imported, and whatever a constructor or
 * the factory throws. What `server.handle` throws is passed on.
 */
export async function registerStepsFromDir(
  server: StepServer,
  dir: string | readonly string[],
  factory?: InstanceFactory
): Promise<DurableStepMeta[]> {
  return serveSteps(server, stepsAmong(await exportsUnder(dir)), factory)
}

/**
 * Serves the steps that the modules of a generated barrel export. Otherwise like `registerStepsFromDir`; a
 * `DuplicateDiscoveryError` names the keys of the modules, which are paths in a generated barrel. An entry
 * that is no lazy import is an `InvalidArgumentError`.
 */
export async function registerStepsFromBarrel(
  server: StepServer,
  barrel: Barrel,
  factory?: InstanceFactory
): Promise<DurableStepMeta[]> {
  return serveSteps(server, stepsAmong(await exportsOfBarrel(barrel)), factory)
}

/**
 * Serves the steps among exported values: a list of values or of whole modules, or one module. Otherwise
 * like `registerStepsFromDir`.
 */
export async function registerSteps(
  server: StepServer,
  exports: Iterable<unknown> | Readonly<Record<string, unknown>>,
  factory?: InstanceFactory
): Promise<DurableStepMeta[]> {
  const list = Symbol.iterator in exports ? [...(exports as Iterable<unknown>)] : [exports]
  const values = list.flatMap((item) =>
    typeof item === 'object' && item !== null ? Object.values(item) : [item]
  )
  return serveSteps(server, stepsAmong(values.map((value) => ({ value }))), factory)
}

/** One name and what answers it: a handle, or the method `key` of an instance of `target`. */
interface FoundStep {
  name: string
  /** The function that carries the stamps. */
  declared: (...args: never[]) => unknown
  target?: Constructor
  key?: PropertyKey
  file?: string
  /** Stands for the file where there is none. */
  place?: string
}

function stepsAmong(exported: readonly Exported[]): FoundStep[] {
  const seen = new Set<unknown>()
  const steps = new Map<string, FoundStep>()
  for (const { value, ...from } of exported) {
    if (typeof value !== 'function' || seen.has(value)) continue
    seen.add(value)
    for (const step of stepsOf(value as Constructor, from)) {
      const other = steps.get(step.name)
      steps.set(step.name, other ? arbitrate(other, step) : step)
    }
  }
  return [...steps.values()]
}

function stepsOf(value: Constructor, from: Omit<Exported, 'value'>): FoundStep[] {
  const name = stepNameOf(value)
  return name === undefined
    ? methodsOf(value).map((step) => ({ ...step, ...from }))
    : [{ name, declared: value as never, ...from }]
}

/** Stamped methods from the class upwards; an override without a stamp of its own runs under the old one. */
function methodsOf(target: Constructor): FoundStep[] {
  const methods = new Map<PropertyKey, FoundStep>()
  for (let level = target.prototype; level; level = Object.getPrototypeOf(level)) {
    for (const key of Reflect.ownKeys(level)) {
      const declared: unknown = Object.getOwnPropertyDescriptor(level, key)?.value
      const name = stepNameOf(declared)
      if (name === undefined || methods.has(key)) continue
      methods.set(key, { name, declared: declared as FoundStep['declared'], target, key })
    }
  }
  return [...methods.values()]
}

/** Which of two answers for one name stands. Throws when both could. */
function arbitrate(first: FoundStep, second: FoundStep): FoundStep {
  if (first.declared === second.declared) {
    // A method that is exported by itself as well: it needs its instance.
    if (!second.target) return first
    if (!first.target) return second
  }
  if (extendsClass(first.target, second.target)) return first
  if (extendsClass(second.target, first.target)) return second
  throw new DuplicateDiscoveryError('step', first.name, [placeOf(first), placeOf(second)])
}

function extendsClass(derived: Constructor | undefined, base: Constructor | undefined): boolean {
  return derived !== undefined && base !== undefined && derived.prototype instanceof base
}

function placeOf({ file, place, target, declared }: FoundStep): string {
  return file ?? place ?? (target ?? declared).name
}

async function serveSteps(
  server: StepServer,
  steps: readonly FoundStep[],
  factory: InstanceFactory | undefined
): Promise<DurableStepMeta[]> {
  const instances = new Map<Constructor, object>()
  for (const { target } of steps) {
    if (!target || instances.has(target)) continue
    instances.set(target, factory ? await factory(target) : new target())
  }
  for (const step of steps) {
    const run = handlerOf(step, step.target && instances.get(step.target))
    server.handle(step.name, servedHandler(step.name, run, stepSchemasOf(step.declared)))
  }
  return steps.map(metaOf)
}

function handlerOf({ declared, key }: FoundStep, instance: object | undefined): StepHandler {
  if (instance === undefined || key === undefined) return declared as StepHandler
  const methods = instance as Record<PropertyKey, StepHandler>
  return (input, log) => methods[key](input, log)
}

function metaOf({ name, declared, file }: FoundStep): DurableStepMeta {
  const config = stepConfigOf(declared)
  return {
    name,
    ...(config === undefined ? {} : { config }),
    ...(file === undefined ? {} : { file }),
  }
}
