/*
 * A life: one child process, from spawn to SIGKILL. The pinned Node runs the parent, so `process.execPath`
 * is what the child runs on too.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Command, Notice } from './protocol.ts'

const CHILD = join(import.meta.dirname, 'child.ts')
const ANSWER_MS = 60_000

export interface LifeOptions {
  name: string
  log: string
}

type Unanswered = { resolve: () => void; reject: (error: Error) => void }

export class Life {
  readonly name: string
  readonly #process: ChildProcess
  readonly #listeners = new Set<(notice: Notice) => void>()
  readonly #unanswered = new Map<number, Unanswered>()
  readonly #exited: Promise<unknown>
  readonly ready: Promise<void>
  #errors = ''
  #sent = 0

  constructor({ name, log }: LifeOptions) {
    this.name = name
    this.#process = spawn(
      process.execPath,
      [
        '--import=@poppinss/ts-exec',
        '--enable-source-maps',
        CHILD,
        JSON.stringify({ life: name, log }),
      ],
      { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] }
    )
    this.#exited = once(this.#process, 'exit')
    for (const stream of [this.#process.stdout!, this.#process.stderr!]) {
      stream.on('data', (chunk) => (this.#errors += String(chunk)))
    }
    const ready = Promise.withResolvers<void>()
    this.ready = ready.promise
    this.#process.on('message', (notice: Notice) => {
      if (notice.is === 'ready') ready.resolve()
      else if (notice.is === 'ack') this.#answer(notice)
      else for (const listener of this.#listeners) listener(notice)
    })
    void this.#exited.then(() => {
      const error = new Error(`child ${name} is gone ${this.#errors}`)
      ready.reject(error)
      for (const { reject } of this.#unanswered.values()) reject(error)
    })
    this.ready.catch(() => {})
  }

  /** What the process printed: nothing, when all is well. */
  get printed(): string {
    return this.#errors
  }

  /** Calls back for what the child says; the answer stops it. */
  listen(listener: (notice: Notice) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Resolves when the child did it; rejects when it failed or the child died first. */
  tell(command: Command): Promise<void> {
    const id = ++this.#sent
    const answer = Promise.withResolvers<void>()
    const late = setTimeout(
      () => answer.reject(new Error(`child ${this.name} does not answer ${command.do}`)),
      ANSWER_MS
    )
    void answer.promise.catch(() => {}).finally(() => clearTimeout(late))
    this.#unanswered.set(id, answer)
    this.#process.send({ ...command, id }, (error) => error && answer.reject(error))
    return answer.promise
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  #answer({ id, error }: Extract<Notice, { is: 'ack' }>): void {
    const waiting = this.#unanswered.get(id)
    this.#unanswered.delete(id)
    if (error === undefined) waiting?.resolve()
    else waiting?.reject(new Error(error))
  }
}
