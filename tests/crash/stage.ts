/*
 * A stage: the runs of one trial, the lives that execute them one after the other, and what the outside
 * world owes them: a start and an approval each, given once whatever was killed in between.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { isTerminalStatus } from '../../src/types/run.ts'
import { isSettledStatus } from '../../src/types/checkpoint.ts'
import type { DatabaseLocation } from '../helpers/databases.ts'
import type { CrashData } from './data.ts'
import { type Death, type Evidence, settledNames } from './judge.ts'
import { Life } from './life.ts'
import type { LogLine, Notice, OpenHost } from './protocol.ts'

export interface Subject {
  host: string
  runId: string
  bad: boolean
  location: DatabaseLocation
  started: boolean
  approved: boolean
  /** An approval is on its way; after a kill it counts as such until the data were asked. */
  approving: boolean
  /** The life that gave, or gives, the approval. */
  approver?: Life
  /** The life that has it now said that it waits for the approval. */
  waits: boolean
  held: boolean
  ended: boolean
  /** What a living child refused to do. */
  refusals: string[]
}

export interface StageOptions {
  data: CrashData
  /** Unique within the process. */
  name: string
  leaseMs: number
  pollMs: number
}

const LOOK_MS = 10
const READ_MS = 200

export class Stage {
  readonly #options: StageOptions
  readonly subjects = new Map<string, Subject>()
  readonly deaths: Death[] = []
  /** Lives that may speak, and how to stop listening to them. */
  readonly #lives = new Map<Life, () => void>()
  readonly #known: Life[] = []
  /** Lives that outlast this stage. */
  readonly #borrowed = new Set<Life>()
  #named = 0

  constructor(options: StageOptions) {
    this.#options = options
  }

  /** Runs of one host share its database and namespace. */
  async host(): Promise<{ host: string; location: DatabaseLocation }> {
    const { data, name } = this.#options
    return { host: `${name}-h${++this.#named}`, location: await data.allocate() }
  }

  subject(at: { host: string; location: DatabaseLocation }, bad: boolean): Subject {
    const subject: Subject = {
      ...at,
      bad,
      runId: `${at.host}-r${this.subjects.size + 1}`,
      started: false,
      approved: false,
      approving: false,
      waits: false,
      held: false,
      ended: false,
      refusals: [],
    }
    this.subjects.set(subject.runId, subject)
    return subject
  }

  spawn(name: string): Life {
    const { data } = this.#options
    return this.#meet(new Life({ name: `${this.#options.name}${name}`, log: data.log.path }))
  }

  /** A life that serves other stages too: it is not killed here. */
  borrow(life: Life): Life {
    this.#borrowed.add(life)
    return this.#meet(life)
  }

  async open(
    life: Life,
    host: { host: string; location: DatabaseLocation },
    more: Pick<OpenHost, 'target' | 'slack' | 'announce' | 'continuations'> = {}
  ): Promise<void> {
    const { data, leaseMs, pollMs } = this.#options
    const location = data.forLife(host.location, life.name)
    await life.ready
    await life.tell({ do: 'open', host: host.host, location, leaseMs, pollMs, ...more })
  }

  /** Gives a run what it has not had yet. Whatever fails here was killed, and is given again. */
  async tend(life: Life, subject: Subject, options: { approve?: boolean } = {}): Promise<void> {
    const { host, runId, bad } = subject
    try {
      if (!subject.started) {
        await life.tell({ do: 'start', host, runId, bad })
        subject.started = true
      }
      if (!options.approve || subject.approved || subject.approving) return
      subject.approving = true
      subject.approver = life
      await life.tell({ do: 'approve', host, runId })
      subject.approved = true
      subject.approving = false
    } catch (error) {
      if (this.#lives.has(life) && !subject.held) subject.refusals.push(String(error))
    }
  }

  /** After a kill: what has reached the data of what was owed? Then gives the rest. */
  async takeOver(life: Life, subject: Subject): Promise<void> {
    subject.held = false
    // It was asked for the approval already, and lives: asking again would give two.
    if (subject.approver === life) return this.tend(life, subject)
    subject.approving = true
    const { run, rows, waiters, buffered } = await this.#read(subject)
    const signal = rows.find((row) => row.kind === 'signal')
    subject.started = run !== null
    subject.approved = buffered > 0 || (signal !== undefined && isSettledStatus(signal.status))
    subject.approving = false
    // It may have said so while the data were read.
    await this.tend(life, subject, { approve: waiters > 0 || subject.waits })
  }

  async kill(life: Life): Promise<void> {
    this.#leave(life)
    await life.kill()
    await this.#options.data.sessionsGone(life.name)
    const settled = new Map<string, Set<string>>()
    for (const subject of this.subjects.values()) {
      subject.waits = false
      settled.set(subject.runId, settledNames(await this.#read(subject)))
    }
    this.deaths.push({ life: life.name, lines: this.#options.data.log.lines().length, settled })
  }

  /** Resolves when all of them were held or ended, or the patience is over: the data tell who ended. */
  async rest(subjects: Subject[], patienceMs: number): Promise<void> {
    const giveUpAt = performance.now() + patienceMs
    let readAt = performance.now() + READ_MS
    while (performance.now() < giveUpAt) {
      const open = subjects.filter(({ held, ended }) => !held && !ended)
      if (open.length === 0) return
      await pause(LOOK_MS)
      if (performance.now() < readAt) continue
      for (const subject of open) {
        const { run } = await this.#read(subject)
        if (run && isTerminalStatus(run.status)) subject.ended = true
      }
      readAt = performance.now() + READ_MS
    }
  }

  async evidence(subject: Subject, timeline?: string[]): Promise<Evidence> {
    const { runId, bad } = subject
    const lines = this.#options.data.log.lines().filter((line) => line.runId === runId)
    const stored = await this.#read(subject)
    const complaints = [...subject.refusals, ...this.#printed()]
    return { runId, bad, stored, lines, deaths: this.deaths, timeline, complaints }
  }

  /** What a host said, boundaries and errors included. */
  linesOf(subject: Subject): LogLine[] {
    return this.#options.data.log.lines().filter(({ host }) => host === subject.host)
  }

  /** Ends what still lives; a borrowed life only lets go of the hosts. */
  async close(): Promise<void> {
    for (const life of [...this.#lives.keys()]) {
      this.#leave(life)
      if (this.#borrowed.has(life)) await this.#closeHosts(life)
      else await life.kill()
    }
    for (const { location } of this.subjects.values()) await this.#options.data.forget(location)
  }

  async #closeHosts(life: Life): Promise<void> {
    const hosts = new Set([...this.subjects.values()].map(({ host }) => host))
    await Promise.all([...hosts].map((host) => life.tell({ do: 'close', host })))
  }

  #meet(life: Life): Life {
    this.#known.push(life)
    this.#lives.set(
      life,
      life.listen((notice) => this.#hear(life, notice))
    )
    return life
  }

  #leave(life: Life): void {
    this.#lives.get(life)?.()
    this.#lives.delete(life)
  }

  /** Children print nothing unless something is broken. */
  #printed(): string[] {
    return this.#known.flatMap(({ name, printed }) =>
      printed === '' ? [] : [`child ${name} printed: ${printed}`]
    )
  }

  #read(subject: Subject) {
    return this.#options.data.read(subject.location, subject.runId)
  }

  #hear(life: Life, notice: Notice): void {
    for (const subject of this.subjects.values()) {
      if ('host' in notice && notice.host !== subject.host) continue
      if ('runId' in notice && notice.runId !== subject.runId) continue
      if (notice.is === 'held') subject.held = true
      if (notice.is === 'ended') subject.ended = true
      if (notice.is !== 'waits') continue
      subject.waits = true
      void this.tend(life, subject, { approve: true })
    }
  }
}
