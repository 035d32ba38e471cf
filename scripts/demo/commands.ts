/*
 * Commands that are run to their end.
 */
import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'

const running = new Set<ChildProcess>()

/** A command that exited with something else than 0. */
export class CommandError extends Error {
  constructor(
    command: string,
    code: number | null,
    /** All it printed. */
    readonly output: string
  ) {
    super(`${command} exited with ${code}`)
  }
}

/** The standard output of a command. Rejects with a `CommandError` unless it exits with 0. */
export function runToEnd(
  command: string,
  args: string[],
  options: Pick<SpawnOptions, 'cwd' | 'env' | 'shell'>
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    running.add(child)
    let output = ''
    let everything = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
      everything += chunk
    })
    child.stderr.on('data', (chunk) => (everything += chunk))
    child.once('error', reject)
    child.once('close', (code) => {
      running.delete(child)
      if (code === 0) resolve(output)
      else reject(new CommandError([command, ...args].join(' '), code, everything))
    })
  })
}

/** Tells every command that still runs to end. */
export function stopCommands(): void {
  for (const child of running) child.kill('SIGTERM')
}
