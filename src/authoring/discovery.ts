/*
 * Discovery of modules: which files of a directory count, in which order, and their exports. What is a
 * workflow and what a step is decided beside it, in discover_workflows.ts and discover_steps.ts.
 */
import { readdir, realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DurableError, messageOf } from '../foundation/failure.ts'
import { compareText } from '../foundation/versions.ts'

/** A class that discovery may build. `any`: constructors take whatever the container injects. */
export type Constructor = new (...args: any[]) => object

/** Builds the one instance of a discovered class; default `new`. */
export type InstanceFactory = (target: Constructor) => object | Promise<object>

export interface DiscoveryOptions {
  /** Called with a sentence for everything that looks like a mistake but stops nothing. */
  warn?: (message: string) => void
}

/** One exported value and the file it came from; none when it was handed over. */
export interface Exported {
  value: unknown
  file?: string
  /** What tells it from another one where there is no file: its key in a barrel. */
  place?: string
}

const DECLARATION = /\.d\.[cm]?ts$/
const SPEC = /\.(?:spec|test)\.[cm]?[jt]s$/
const TYPESCRIPT = /\.m?ts$/
const JAVASCRIPT = /\.m?js$/

/**
 * The exports of every module under the directories, in a stable order; a file reached twice counts once.
 * A missing directory holds nothing. Throws `DurableError` (`discovery_import`, naming the file, with
 * `cause`) for a module that throws when imported; other errors of the file system are passed on.
 */
export async function exportsUnder(directories: string | readonly string[]): Promise<Exported[]> {
  const exported: Exported[] = []
  for (const file of await modulesUnder(directories)) {
    const namespace = await importModule(file)
    exported.push(...Object.values(namespace).map((value) => ({ value, file })))
  }
  return exported
}

/** The files of those modules, absolute, in the same order; nothing is imported. */
export async function modulesUnder(directories: string | readonly string[]): Promise<Set<string>> {
  const roots = new Set([directories].flat().map((directory) => resolve(directory)))
  const files = new Set<string>()
  for (const root of roots) await collectModules(root, files, new Set())
  return files
}

async function collectModules(
  directory: string,
  files: Set<string>,
  visited: Set<string>
): Promise<void> {
  const entries = await entriesOf(directory, visited)
  const modules = new Set(preferTypeScript(entries.filter(isFile).map((entry) => entry.name)))
  for (const entry of entries) {
    const path = join(directory, entry.name)
    if (!entry.isFile) await collectModules(path, files, visited)
    else if (modules.has(entry.name)) files.add(path)
  }
}

/**
 * The files of one directory that are modules to discover. A source and its compiled twin may lie side by
 * side: the choice belongs to each directory.
 */
export function preferTypeScript(names: string[]): string[] {
  const candidates = names.filter((name) => !DECLARATION.test(name) && !SPEC.test(name))
  const typescript = candidates.filter((name) => TYPESCRIPT.test(name))
  return typescript.length > 0 ? typescript : candidates.filter((name) => JAVASCRIPT.test(name))
}

interface Entry {
  name: string
  isFile: boolean
}

const isFile = (entry: Entry): boolean => entry.isFile

/** Files and directories in order, links followed; empty for what is missing or was visited before. */
async function entriesOf(directory: string, visited: Set<string>): Promise<Entry[]> {
  const real = await unlessMissing(realpath(directory))
  if (real === undefined || visited.has(real)) return []
  visited.add(real)
  const entries: Entry[] = []
  const names = await readdir(directory)
  for (const name of names.sort(compareText)) {
    const stats = await unlessMissing(stat(join(directory, name)))
    if (stats?.isFile() || stats?.isDirectory()) entries.push({ name, isFile: stats.isFile() })
  }
  return entries
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The module in a file. Throws `DurableError` (`discovery_import`) when it cannot be imported. */
export function importModule(file: string): Promise<Record<string, unknown>> {
  return importing(file, () => import(pathToFileURL(file).href))
}

/** What `load` imports. Throws `DurableError` (`discovery_import`, naming `what`, with `cause`). */
export async function importing<T>(what: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    throw new DurableError(`cannot import ${what}: ${messageOf(cause)}`, {
      code: 'discovery_import',
      cause,
    })
  }
}
