/*
 * A measurement in a process of its own, where memory can be collected on demand.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** Runs a script of this folder, which prints one line of JSON. */
export async function measured<T>(script: string, options: object): Promise<T> {
  const { stdout } = await execute(process.execPath, [
    '--expose-gc',
    '--import=@poppinss/ts-exec',
    join(import.meta.dirname, script),
    JSON.stringify(options),
  ])
  return JSON.parse(stdout) as T
}
