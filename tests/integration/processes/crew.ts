/*
 * Real processes that do the same at the same moment, and what they say. See `member.ts`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { DatabaseLocation } from '../../helpers/databases.ts'

export interface WorkOrder {
  do: 'work'
  /** Of its engine. */
  name: string
  /** The file that its steps append to. */
  effects: string
  /** The hanging workflow never ends. */
  hang: boolean
  leaseMs: number
}

export type Order =
  | { do: 'open'; location: DatabaseLocation }
  | { do: 'boot' }
  | WorkOrder
  | { do: 'start'; runIds: string[] }
  | { do: 'hang'; runId: string }
  | { do: 'leave' }

export type Report =
  | { is: 'ready' }
  | { is: 'done'; what: string }
  | { is: 'failed'; what: string }
  | { is: 'booted'; warnings: string[]; statements: number }
  | { is: 'logged'; what: string }

const MEMBER = join(import.meta.dirname, 'member.ts')
const ANSWER_MS = 60_000

export class Member {
  readonly reports: Report[] = []
  readonly #process: ChildProcess
  readonly #exited: Promise<unknown[]>
  #printed = ''
  #changed = Promise.withResolvers<void>()

  constructor() {
    const args = ['--import=@poppinss/ts-exec', '--enable-source-maps', MEMBER]
    this.#process = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
    this.#exited = once(this.#process, 'exit')
    for (const stream of [this.#process.stdout!, this.#process.stderr!]) {
      stream.on('data', (chunk) => (this.#printed += String(chunk)))
    }
    this.#process.on('message', (report: Report) => this.#hear(report))
    void this.#exited.then(() => this.#hear({ is: 'failed', what: `gone: ${this.#printed}` }))
  }

  /** The process printed this: nothing, when all is well. */
  get printed(): string {
    return this.#printed
  }

  get logged(): string[] {
    return this.reports.flatMap((report) => (report.is === 'logged' ? [report.what] : []))
  }

  /** Resolves with the first such report from now on. */
  async next<K extends Report['is']>(is: K): Promise<Extract<Report, { is: K }>> {
    const from = this.reports.length
    return this.#find(from, is)
  }

  ready(): Promise<Report> {
    return this.#find(0, 'ready')
  }

  /** Resolves when it was done. */
  async tell(order: Order): Promise<void> {
    const from = this.reports.length
    this.#process.send(order)
    await this.#find(from, 'done')
  }

  /** Its exit code, once it went by itself. */
  async leave(): Promise<unknown> {
    this.#process.send({ do: 'leave' } satisfies Order)
    const [code] = await this.#exited
    return code
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  #hear(report: Report): void {
    this.reports.push(report)
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  async #find<K extends Report['is']>(from: number, is: K): Promise<Extract<Report, { is: K }>> {
    const giveUpAt = performance.now() + ANSWER_MS
    for (;;) {
      for (const report of this.reports.slice(from)) {
        if (report.is === is) return report as Extract<Report, { is: K }>
        if (report.is === 'failed') throw new Error(report.what)
      }
      const left = giveUpAt - performance.now()
      if (left <= 0) throw new Error(`the process never said "${is}" ${this.#printed}`)
      const late = Promise.withResolvers<void>()
      const timer = setTimeout(late.resolve, left)
      await Promise.race([this.#changed.promise, late.promise])
      clearTimeout(timer)
    }
  }
}

/** So many processes, all of them ready. */
export async function muster(count: number): Promise<Member[]> {
  const members = Array.from({ length: count }, () => new Member())
  try {
    await Promise.all(members.map((member) => member.ready()))
  } catch (error) {
    await disband(members)
    throw error
  }
  return members
}

export async function disband(members: Member[]): Promise<void> {
  await Promise.all(members.map((member) => member.kill()))
}
