/*
 * A member as the play sees it, from spawn to its end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Answer, FromMember, MemberOptions, ToMember, Verb } from './protocol.ts'

/** A call whose outcome nobody learns: the member ended before it answered. */
export class MemberGone extends Error {}

export class MemberProcess {
  readonly options: MemberOptions
  readonly #process: ChildProcess
  readonly #exited: Promise<unknown>
  readonly #calls = new Map<number, (answer: Answer | null) => void>()
  #nextCall = 1
  #ordered = false
  #ready = false
  /** What it printed, its last lines. */
  output = ''

  private constructor(options: MemberOptions) {
    this.options = options
    const script = join(import.meta.dirname, 'member.ts')
    const args = ['--import=@poppinss/ts-exec', '--enable-source-maps', script]
    this.#process = spawn(process.execPath, [...args, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#exited = once(this.#process, 'exit').then(() => this.#letGo())
    for (const stream of [this.#process.stdout!, this.#process.stderr!]) {
      stream.on('data', (chunk) => {
        this.output = (this.output + String(chunk)).slice(-4_000)
      })
    }
  }

  static async begin(options: MemberOptions): Promise<MemberProcess> {
    const member = new MemberProcess(options)
    const ready = Promise.withResolvers<void>()
    member.#process.on('message', (message: FromMember) => {
      if (message === 'ready') ready.resolve()
      else member.#take(message)
    })
    await Promise.race([ready.promise, member.#exited])
    member.#ready = true
    return member
  }

  /** It takes calls. */
  get alive(): boolean {
    return this.#ready && !this.#ordered && this.#process.exitCode === null
  }

  /** It ended although nobody asked it to. */
  get broke(): boolean {
    return !this.#ordered && (this.#process.exitCode !== null || this.#process.signalCode !== null)
  }

  /** Rejects with what the engine threw, or with `MemberGone`. */
  async call(verb: Verb, args: unknown[]): Promise<unknown> {
    const id = this.#nextCall++
    const answered = new Promise<Answer | null>((resolve) => this.#calls.set(id, resolve))
    if (!this.#send({ id, verb, args })) throw new MemberGone(this.options.name)
    const answer = await answered
    if (answer === null) throw new MemberGone(this.options.name)
    if (answer.error === undefined) return answer.result
    throw Object.assign(new Error(answer.error.message), { name: answer.error.name })
  }

  async kill(): Promise<void> {
    this.#ordered = true
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  /** Stops as a deploy does; answers the exit code, null when it had to be killed after `patienceMs`. */
  async stop(patienceMs: number): Promise<number | null> {
    this.#ordered = true
    this.#send('stop')
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), patienceMs)
    await this.#exited
    clearTimeout(timer)
    return this.#process.exitCode
  }

  #send(message: ToMember): boolean {
    if (!this.#process.connected) return false
    this.#process.send(message, () => {})
    return true
  }

  #take(answer: Answer): void {
    this.#calls.get(answer.id)?.(answer)
    this.#calls.delete(answer.id)
  }

  #letGo(): void {
    for (const end of this.#calls.values()) end(null)
    this.#calls.clear()
  }
}
