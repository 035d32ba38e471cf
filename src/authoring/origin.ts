/*
 * Which package declared a workflow: the name in the nearest manifest at or above its file. Never a guess:
 * without a readable, named manifest the origin is unknown.
 */
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { getCallSites } from 'node:util'

/** Finds origins; reads every directory at most once in its lifetime. */
export class OriginFinder {
  readonly #byDirectory = new Map<string, Promise<string | undefined>>()

  /** The package that a file belongs to, `undefined` when there is none. `file` is absolute. */
  ofFile(file: string): Promise<string | undefined> {
    return this.ofDirectory(dirname(file))
  }

  /** The package that a directory belongs to, `undefined` when there is none. */
  ofDirectory(directory: string): Promise<string | undefined> {
    const known = this.#byDirectory.get(directory)
    if (known) return known
    const found = this.#find(directory)
    this.#byDirectory.set(directory, found)
    return found
  }

  async #find(directory: string): Promise<string | undefined> {
    const name = await nameInManifest(join(directory, 'package.json'))
    const parent = dirname(directory)
    return name ?? (parent === directory ? undefined : this.ofDirectory(parent))
  }
}

/**
 * The file of whoever called a function of the module at `url`, `undefined` when that is no file. Only
 * before that function awaits anything.
 */
export function callingFile(url: string): string | undefined {
  const own = new Set([import.meta.url, url])
  const caller = getCallSites({ sourceMap: false }).find(({ scriptName }) => !own.has(scriptName))
  return caller?.scriptName.startsWith('file:') ? fileURLToPath(caller.scriptName) : undefined
}

/** An unreadable, malformed or unnamed manifest is no answer; the next one up may be. */
async function nameInManifest(file: string): Promise<string | undefined> {
  try {
    const name: unknown = JSON.parse(await readFile(file, 'utf8'))?.name
    return typeof name === 'string' && name !== '' ? name : undefined
  } catch {
    return undefined
  }
}
