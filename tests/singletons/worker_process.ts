/*
 * A worker as its parent sees it, from spawn to SIGKILL.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { WorkerOptions } from './worker.ts'

export class Worker {
  readonly #process: ChildProcess
  readonly #exited: Promise<unknown>
  output = ''

  private constructor(process: ChildProcess) {
    this.#process = process
    this.#exited = once(process, 'exit')
    for (const stream of [process.stdout!, process.stderr!]) {
      stream.on('data', (chunk) => (this.output += String(chunk)))
    }
  }

  static async begin(options: WorkerOptions): Promise<Worker> {
    const script = join(import.meta.dirname, 'worker.ts')
    const args = ['--import=@poppinss/ts-exec', '--enable-source-maps', script]
    const worker = new Worker(
      spawn(process.execPath, [...args, JSON.stringify(options)], {
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      })
    )
    await Promise.race([
      once(worker.#process, 'message'),
      worker.#exited.then(() => {
        throw new Error(`a worker ended at once: ${worker.output}`)
      }),
    ])
    return worker
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }
}
