/*
 * Workflow references: a class or a registered name. Reads a class's `static workflow` and brings it
 * into the shape that registration takes, with every reference in it resolved to a name.
 */
import { InvalidArgumentError } from '../errors.ts'
import type {
  OnErrorRoute,
  RegisterOptions,
  WorkflowMeta,
  WorkflowOptions,
  WorkflowRef,
} from '../types/workflow.ts'
import { schedulesOf, triggersOf } from './decorators.ts'
import { checkOptions, OPTIONS } from './options.ts'
import { requireStandardSchema } from './validate_standard.ts'

const FIRST_VERSION = '1'

/**
 * The registered name of a workflow class; a name is its own.
 * Throws `InvalidArgumentError` for a class without `static workflow`.
 */
export function workflowName(ref: WorkflowRef): string {
  if (typeof ref === 'string') return ref
  const name = optionsOf(ref)?.name
  if (name !== undefined) return name
  throw new InvalidArgumentError(
    `workflow reference ${describe(ref)}`,
    ref === undefined
      ? 'was read before its module had run: two modules import each other, use the name instead'
      : 'has no `static workflow = { name }`'
  )
}

/**
 * The `static workflow` of a class, its version '1' unless it declares one, its triggers and its schedules.
 * `undefined` for anything that is not a class with a named `static workflow`.
 * Throws `InvalidArgumentError` for a `static on` or `static schedule` that cannot be used.
 */
export function workflowMeta(target: unknown): WorkflowMeta | undefined {
  const options = optionsOf(target)
  if (!options) return undefined
  const meta = { ...options, version: String(options.version ?? FIRST_VERSION) }
  const on = triggersOf(target as object)
  const schedules = schedulesOf(target as object)
  return {
    ...meta,
    ...(on.length === 0 ? {} : { on }),
    ...(schedules.length === 0 ? {} : { schedules }),
  }
}

/**
 * What `register` takes for a workflow declared as `meta`. Absent options stay absent.
 * Throws `InvalidArgumentError` for a reference without a name, an unknown option and a schema that is none.
 */
export function registerOptionsOf(meta: WorkflowMeta): RegisterOptions {
  checkOptions(`static workflow of "${meta.name}"`, meta, OPTIONS.workflow)
  const options: RegisterOptions = {
    tags: meta.tags,
    executionTimeout: meta.executionTimeout,
    onEvent: meta.onEvent,
    singleton: meta.singleton,
    concurrency: meta.concurrency,
    origin: meta.origin,
    onError: meta.onError?.map((route) => resolveRoute(route, meta.name)),
    deadLetterWorkflow: meta.deadLetterWorkflow && workflowName(meta.deadLetterWorkflow),
    inputSchema: requireStandardSchema(
      meta.inputSchema,
      `the inputSchema of workflow "${meta.name}"`
    ),
    searchAttributesSchema: requireStandardSchema(
      meta.searchAttributes,
      `the searchAttributes schema of workflow "${meta.name}"`
    ),
  }
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined)
  ) as RegisterOptions
}

function resolveRoute(
  { code, workflow }: NonNullable<WorkflowOptions['onError']>[number],
  declaredBy: string
): OnErrorRoute {
  const handler = workflowName(workflow)
  if (code === undefined) return { workflow: handler }
  const value = typeof code === 'string' ? code : code?.code
  if (typeof value === 'string') return { code: value, workflow: handler }
  throw new InvalidArgumentError(
    `the onError code of workflow "${declaredBy}"`,
    'is neither a string nor an error class with a static `code`'
  )
}

function optionsOf(target: unknown): WorkflowOptions | undefined {
  if (typeof target !== 'function') return undefined
  const options = readStatic(target)
  return typeof options?.name === 'string' && options.name !== '' ? options : undefined
}

/** Modules export all kinds of callables; one that refuses to be read declares no workflow. */
function readStatic(target: object): WorkflowOptions | undefined {
  try {
    return (target as { workflow?: WorkflowOptions }).workflow
  } catch {
    return undefined
  }
}

function describe(ref: unknown): string {
  return typeof ref === 'function' ? ref.name || '(anonymous class)' : String(ref)
}
