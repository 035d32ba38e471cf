/*
 * Assembler hooks that generate a barrel: one file with a lazy import for every module of one or several
 * directories, written when the dev server, the tests or a build start, and whenever a file comes or goes.
 * What counts as a module is what discovery counts (src/authoring/discovery.ts). Keys are the paths of the
 * modules, so that none hides another and an error can name them.
 */
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import type { AllHooks } from '@adonisjs/assembler/types'
import { InvalidArgumentError } from '../errors.ts'
import { preferTypeScript } from '../authoring/discovery.ts'

export interface BarrelHookOptions {
  /** Directory or directories of the modules, relative to the application. */
  source?: string | string[]
  /** Import alias that stands for the directory. */
  importAlias?: string
  /** Where the barrel is written, relative to the application. */
  output?: string
}

type InitHook = Extract<AllHooks['init'][number], { run: unknown }>['run']
type ModuleList = { asList(): Record<string, string> }

/** An `init` hook of the assembler, as the rc file takes it: itself, or imported lazily. */
export type BarrelHook = InitHook & { run: InitHook }

export interface BarrelDefaults {
  /** What the barrel exports, and its name among the generated files. */
  name: 'workflows' | 'steps'
  source: string
  importAlias: string
  output: string
}

/** Throws `InvalidArgumentError` for options that name no directory, no alias or no file. */
export function barrelHook(options: BarrelHookOptions, defaults: BarrelDefaults): BarrelHook {
  const { name } = defaults
  const sources = sourcesOf(options.source ?? defaults.source, name)
  const output = posix.normalize(text(options.output ?? defaults.output, 'output', name))
  const aliases: Aliases = {
    alias: text(options.importAlias ?? defaults.importAlias, 'importAlias', name),
    isTrusted: options.importAlias !== undefined && sources.length === 1,
  }
  const run: InitHook = (_, __, generator) => {
    const root = posix.normalize(generator.appRoot.replaceAll('\\', '/'))
    generator.add(name, {
      source: commonParent(sources, root),
      glob: ['**/*.{ts,mts,js,mjs}'],
      filter: (path, isDirectory) => isDirectory || isUnder(sources, relativeTo(root, path)),
      output,
      comment: true,
      as: (modules, buffer) => {
        const importPath = importPaths({ root, sources, output, ...aliases })
        buffer.write(`export const ${name} = {`).indent()
        for (const file of discoverable(modules, root)) {
          buffer.write(`${quoted(file)}: () => import(${quoted(importPath(file))}),`)
        }
        buffer.dedent().write('}')
      },
    })
  }
  // `hooks.init` takes an object with `run`, or a lazy import whose default is a function.
  return Object.assign(run, { run })
}

/** The modules that discovery would find, relative to the application, in a stable order. */
function discoverable(modules: ModuleList, root: string): string[] {
  const files = Object.values(modules.asList()).map((path) => relativeTo(root, path))
  const byDirectory = Map.groupBy(files, (file) => posix.dirname(file))
  return [...byDirectory].flatMap(([directory, inside]) =>
    preferTypeScript(inside.map((file) => posix.basename(file))).map((base) =>
      posix.join(directory, base)
    )
  )
}

interface Aliases {
  alias: string
  /** The application said itself that the alias stands for its one directory. */
  isTrusted: boolean
}

interface ImportSettings extends Aliases {
  root: string
  sources: string[]
  output: string
}

/** An import resolves either by the alias, where it covers the file, or relative to the barrel. */
function importPaths(settings: ImportSettings): (file: string) => string {
  const { alias, root, sources, output } = settings
  const covered = coveredBy(settings)
  return (file) => {
    const extension = posix.extname(file)
    if (covered !== undefined && isUnder([covered], file) && /^\.[jt]s$/.test(extension)) {
      return `${alias}/${posix.relative(covered, file).slice(0, -extension.length)}`
    }
    const path = posix.relative(posix.join(root, posix.dirname(output)), posix.join(root, file))
    return path.startsWith('.') ? path : `./${path}`
  }

  function coveredBy({ isTrusted }: Aliases): string | undefined {
    if (isTrusted) return sources[0]
    const imports = importsOfManifest(root)
    if (!imports) return sources.length === 1 ? sources[0] : undefined
    const target = imports[`${alias}/*`]
    const directory = typeof target === 'string' ? /^\.\/(.*)\/\*\.[jt]s$/.exec(target)?.[1] : ''
    return directory || undefined
  }
}

/** `undefined` when the application has no manifest that can be read. */
function importsOfManifest(root: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(readFileSync(posix.join(root, 'package.json'), 'utf8')).imports ?? {}
  } catch {
    return undefined
  }
}

function sourcesOf(given: string | string[], name: string): string[] {
  const list = [given].flat().map((source) => text(source, 'source', name))
  const sources = new Set(list.map((source) => posix.join(source, '.').replace(/\/$/, '')))
  const problem =
    sources.size === 0
      ? 'is an empty list'
      : sources.has('.')
        ? 'must be a directory inside the application, not the application itself'
        : undefined
  if (problem) throw new InvalidArgumentError(`source of ${name}Hook`, problem)
  return [...sources]
}

function text(value: unknown, option: string, name: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new InvalidArgumentError(`${option} of ${name}Hook`, 'must be a text that is not empty')
}

/** The deepest directory that holds all of them: the generator watches one directory per file it writes. */
function commonParent(sources: string[], root: string): string {
  const [first, ...others] = sources.map((source) => posix.join(root, source))
  let parent = first
  while (!others.every((other) => isUnder([parent], `${other}/`))) parent = posix.dirname(parent)
  return relativeTo(root, parent) || '.'
}

const relativeTo = (root: string, path: string): string =>
  posix.relative(root, path.replaceAll('\\', '/'))

const isUnder = (directories: string[], path: string): boolean =>
  directories.some((directory) => path.startsWith(`${directory}/`))

const quoted = (value: string): string => `'${value.replace(/['\\]/g, '\\$&')}'`
