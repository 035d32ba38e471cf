/*
 * Directories of real modules for the discovery specs. They lie inside the repository, where the loader
 * compiles TypeScript, and each in a folder of its own, since modules are cached by path for good.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { getActiveTestOrFail } from '@japa/runner'

const SCRATCH = join(import.meta.dirname, '../tmp')
const AUTHORING = join(import.meta.dirname, '../../src/authoring')

/** Writes files into a new directory, removed after the test; answers its path. */
export async function tree(files: Record<string, string>): Promise<string> {
  await mkdir(SCRATCH, { recursive: true })
  const root = await mkdtemp(join(SCRATCH, 'discovery-'))
  getActiveTestOrFail().cleanup(() => rm(root, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true })
    await writeFile(join(root, name), text)
  }
  return root
}

const importOf = (name: string, file: string) =>
  `import { ${name} } from ${JSON.stringify(join(AUTHORING, file))}\n`

export const baseImport = importOf('BaseWorkflow', 'base_workflow.ts')
export const stepImport = importOf('defineStep, Step', 'step.ts')

/** The source of a module with one workflow class. */
export function workflowModule(options: string, more = ''): string {
  return (
    `${baseImport}export default class SomeWorkflow extends BaseWorkflow {\n` +
    `  static workflow = ${options}\n` +
    `  async run(ctx, input) { return { name: SomeWorkflow.workflow.name, input } }\n` +
    `}\n${more}`
  )
}

/** A registry that only remembers. */
export class Registrations {
  readonly calls: {
    name: string
    version: string
    fn: (ctx: never, input: unknown) => Promise<unknown>
    options: Record<string, unknown>
  }[] = []

  register(
    name: string,
    version: string,
    fn: (ctx: never, input: unknown) => Promise<unknown>,
    options: object = {}
  ): void {
    this.calls.push({ name, version, fn, options: { ...options } })
  }

  get names(): string[] {
    return this.calls.map(({ name, version }) => `${name}@${version}`)
  }
}

/** A step server that only remembers. */
export class ServedSteps {
  readonly handlers = new Map<string, (input: unknown, log: never) => unknown>()

  handle(name: string, fn: (input: unknown, log: never) => unknown): void {
    this.handlers.set(name, fn)
  }

  get names(): string[] {
    return [...this.handlers.keys()]
  }

  async call(name: string, input?: unknown): Promise<unknown> {
    return this.handlers.get(name)?.(input, undefined as never)
  }
}

/** What a promise or a function fails with; throws when it does not. */
export async function failureOf(work: Promise<unknown> | (() => unknown)): Promise<Error & Fields> {
  try {
    await (typeof work === 'function' ? work() : work)
  } catch (error) {
    return error as Error & Fields
  }
  throw new Error('expected a failure')
}

interface Fields {
  code?: string
  retryable?: boolean
  details?: unknown
  [key: string]: unknown
}
