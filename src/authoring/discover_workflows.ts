/*
 * Discovery of workflows: finds workflow classes among exports, builds one instance of each and registers
 * it. Everything is collected and built before the first registration, so a failure registers nothing.
 */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuplicateDiscoveryError, InvalidArgumentError } from '../errors.ts'
import { DEAD_LETTER_SUFFIX } from '../foundation/ids.ts'
import type { WorkflowCtx, WorkflowFn } from '../types/ctx.ts'
import type { DeadLetter, RegisterOptions, WorkflowClass, WorkflowMeta } from '../types/workflow.ts'
import { exportsOfBarrel, type Barrel } from './barrel.ts'
import { WORKFLOW_BASE } from './base_workflow.ts'
import {
  exportsUnder,
  type Constructor,
  type DiscoveryOptions,
  type Exported,
  type InstanceFactory,
} from './discovery.ts'
import { callingFile, OriginFinder } from './origin.ts'
import { registerOptionsOf, workflowMeta } from './workflow_ref.ts'

/** What registration needs of an engine. */
export interface WorkflowRegistrar {
  register(name: string, version: string, fn: WorkflowFn, options?: RegisterOptions): void
}

/**
 * Imports every module under one or several directories and registers the workflow classes they export,
 * default and named, each class once. Answers their metadata in order, with the `file` and the resolved
 * `origin`: the declared one, or the name in the nearest package.json.
 *
 * `.ts` modules are preferred over `.js` in every directory; declarations and `*.spec`, `*.test` modules
 * are left out; a missing directory holds nothing. `factory` builds the one instance that all runs of a
 * class share (default `new`). A class that extends `BaseWorkflow` without `static workflow` is skipped
 * and reported to `options.warn`.
 *
 * Throws before anything is registered: `DuplicateDiscoveryError` when two classes have the same name and
 * version, `DurableError` (`discovery_import`) for a module that cannot be imported,
 * `InvalidArgumentError` for a class without `run` and for options that cannot be used, and whatever a
 * constructor or the factory throws.
 */
export async function registerWorkflowsFromDir(
  engine: WorkflowRegistrar,
  dir: string | readonly string[],
  factory?: InstanceFactory,
  options: DiscoveryOptions = {}
): Promise<WorkflowMeta[]> {
  const found = workflowsAmong(await exportsUnder(dir), options)
  const origins = new OriginFinder()
  return registerAll(engine, found, factory, async ({ file }) => file && origins.ofFile(file))
}

export interface BarrelOptions extends DiscoveryOptions {
  /** The application the barrel was generated for; default: the package that calls. */
  appRoot?: string | URL
}

/**
 * Registers the workflow classes that the modules of a generated barrel export. The origin of those that
 * declare none is the name in the package.json at or above `options.appRoot`; without it, of the package
 * that calls. Metadata has no `file`. Otherwise like `registerWorkflowsFromDir`; a
 * `DuplicateDiscoveryError` names the keys of the modules, which are paths in a generated barrel. An entry
 * that is no lazy import is an `InvalidArgumentError`.
 */
export async function registerWorkflowsFromBarrel(
  engine: WorkflowRegistrar,
  barrel: Barrel,
  factory?: InstanceFactory,
  options: BarrelOptions = {}
): Promise<WorkflowMeta[]> {
  const { appRoot } = options
  const caller = appRoot === undefined ? callingFile(import.meta.url) : undefined
  const found = workflowsAmong(await exportsOfBarrel(barrel), options)
  const origins = new OriginFinder()
  return registerAll(engine, found, factory, async () => {
    if (appRoot !== undefined) return origins.ofDirectory(pathOf(appRoot))
    return caller && origins.ofFile(caller)
  })
}

const pathOf = (root: string | URL): string =>
  resolve(String(root).startsWith('file:') ? fileURLToPath(root) : String(root))

async function registerAll(
  engine: WorkflowRegistrar,
  found: readonly FoundWorkflow[],
  factory: InstanceFactory | undefined,
  originOf: (meta: WorkflowMeta) => Promise<string | undefined>
): Promise<WorkflowMeta[]> {
  const prepared: PreparedWorkflow[] = []
  for (const { target, meta } of found) {
    const origin = meta.origin ?? (await originOf(meta))
    const instance = factory ? await factory(target) : new target()
    prepared.push(prepare(origin === undefined ? meta : { ...meta, origin }, instance))
  }
  const names = new Set(found.map(({ meta }) => meta.name))
  for (const { meta, deadLetter } of prepared) {
    if (!deadLetter || !names.has(handlerName(meta))) continue
    throw new InvalidArgumentError(
      `workflow "${meta.name}"`,
      `has a deadLetter() method, which is registered as "${handlerName(meta)}": so is another class`
    )
  }
  for (const workflow of prepared) register(engine, workflow)
  return prepared.map(({ meta }) => meta)
}

/**
 * Registers one workflow class and answers its metadata. `factory` builds the instance that all runs share
 * (default `new`). The origin is the declared one, if any.
 * Throws `InvalidArgumentError` for a class without `static workflow` or `run`, and for options that
 * cannot be used.
 */
export async function registerWorkflowClass(
  engine: WorkflowRegistrar,
  target: WorkflowClass,
  factory?: InstanceFactory
): Promise<WorkflowMeta> {
  const meta = workflowMeta(target)
  if (!meta) {
    throw new InvalidArgumentError(
      `workflow class ${target?.name ?? target}`,
      'has no `static workflow = { name }`'
    )
  }
  const workflow = prepare(meta, factory ? await factory(target) : new target())
  register(engine, workflow)
  return meta
}

interface FoundWorkflow {
  target: Constructor
  meta: WorkflowMeta
  /** Its file, or what stands for it. */
  place: string
}

interface PreparedWorkflow {
  meta: WorkflowMeta
  fn: WorkflowFn
  options: RegisterOptions
  /** The body that handles its dead runs. */
  deadLetter?: WorkflowFn
}

/** The workflow classes among exports. Throws `DuplicateDiscoveryError`. */
export function workflowsAmong(
  exported: readonly Exported[],
  { warn }: DiscoveryOptions = {}
): FoundWorkflow[] {
  const classes = new Map<Constructor, Exported>()
  for (const one of exported) {
    if (isClass(one.value) && !classes.has(one.value)) classes.set(one.value, one)
  }
  const found = new Map<string, FoundWorkflow>()
  for (const [target, { file, place = file ?? target.name }] of classes) {
    const meta = workflowMeta(target)
    if (!meta) continue
    const id = `${meta.name}@${meta.version}`
    const other = found.get(id)
    if (other) throw new DuplicateDiscoveryError('workflow', id, [other.place, place])
    found.set(id, { target, meta: file === undefined ? meta : { ...meta, file }, place })
  }
  if (warn) reportNameless(classes, warn)
  return [...found.values()]
}

function reportNameless(
  classes: Map<Constructor, Exported>,
  warn: (message: string) => void
): void {
  for (const [target, { file, place = file ?? 'the given exports' }] of classes) {
    if (workflowMeta(target) || !extendsBaseWorkflow(target)) continue
    const isBaseOfAnother = [...classes.keys()].some((other) => other.prototype instanceof target)
    if (isBaseOfAnother) continue
    warn(
      `${target.name || 'a class'} in ${place} extends BaseWorkflow but has no ` +
        '`static workflow = { name }`, so it is not registered'
    )
  }
}

/** Inherits the stamp: the base class itself, of whichever copy of the package, owns it. */
function extendsBaseWorkflow(target: Constructor): boolean {
  return WORKFLOW_BASE in target && !Object.hasOwn(target, WORKFLOW_BASE)
}

function prepare(meta: WorkflowMeta, instance: object): PreparedWorkflow {
  if (!hasRun(instance)) {
    throw new InvalidArgumentError(
      `workflow "${meta.name}"`,
      `has no run(ctx, input) method${meta.file === undefined ? '' : ` (${meta.file})`}`
    )
  }
  const hasHandler = hasDeadLetter(instance)
  if (hasHandler && meta.deadLetterWorkflow !== undefined) {
    throw new InvalidArgumentError(
      `workflow "${meta.name}"`,
      'has a deadLetter() method and a deadLetterWorkflow: drop one'
    )
  }
  return {
    meta,
    fn: async (ctx, input) => instance.run(ctx, input),
    options: registerOptionsOf(meta),
    ...(hasHandler && {
      deadLetter: async (ctx: WorkflowCtx, dead: unknown) =>
        instance.deadLetter(ctx, dead as DeadLetter),
    }),
  }
}

function hasDeadLetter<T extends object>(
  instance: T
): instance is T & { deadLetter(ctx: WorkflowCtx, dead: DeadLetter): unknown } {
  return typeof (instance as { deadLetter?: unknown }).deadLetter === 'function'
}

const handlerName = ({ name }: WorkflowMeta): string => name + DEAD_LETTER_SUFFIX

function hasRun(instance: object): instance is { run(ctx: WorkflowCtx, input: unknown): unknown } {
  return typeof (instance as { run?: unknown }).run === 'function'
}

function register(engine: WorkflowRegistrar, prepared: PreparedWorkflow): void {
  const { meta, fn, options, deadLetter } = prepared
  engine.register(meta.name, meta.version, fn, options)
  if (!deadLetter) return
  const { origin } = options
  engine.register(
    handlerName(meta),
    meta.version,
    deadLetter,
    origin === undefined ? {} : { origin }
  )
}

function isClass(value: unknown): value is Constructor {
  return typeof value === 'function' && typeof value.prototype === 'object'
}
