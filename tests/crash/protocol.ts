/*
 * What the parent of a crash test and its children say to each other. Commands and notices go over IPC;
 * what a child did is appended to a file, line by line, with plain O_APPEND writes: such a line survives
 * the SIGKILL of its writer, an IPC message may not.
 */
import { appendFileSync, closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import type { DatabaseLocation } from '../helpers/databases.ts'

/** One engine with its own namespace, transport and worker loop inside a child. */
export interface OpenHost {
  do: 'open'
  host: string
  location: DatabaseLocation
  leaseMs: number
  pollMs: number
  /** The boundary at which this host stops for good; see `boundaries.ts`. */
  target?: string
  /** What amounts to the target will do, this far off; see `target.ts`. */
  slack?: number
  /** Announce every boundary in the log. */
  announce?: boolean
  /** Keep suspended bodies live. */
  continuations?: boolean
}

export type Command =
  | OpenHost
  | { do: 'start'; host: string; runId: string; bad: boolean }
  | { do: 'approve'; host: string; runId: string }
  | { do: 'close'; host: string }

export type Request = Command & { id: number }

export type Notice =
  | { is: 'ready' }
  | { is: 'ack'; id: number; error?: string }
  /** The host reached its target and does nothing any more. */
  | { is: 'held'; host: string }
  /** A run registered its wait for the approval. */
  | { is: 'waits'; host: string; runId: string }
  | { is: 'ended'; host: string; runId: string }

export interface LogLine {
  life: string
  host: string
  at: 'boundary' | 'begin' | 'end' | 'error'
  /** Of a boundary its label, of an error its text. */
  text?: string
  runId?: string
  step?: string
  /** The captured order number as the step saw it. */
  number?: string
  /** Place in the log, from 0; set when it is read. */
  position: number
}

export const approvalToken = (runId: string): string => `approve:${runId}`

/** The table of the application that `ctx.transaction` writes to. Without a key: duplicates must show. */
export const LEDGER = 'crash_ledger'

/** Appends lines of one child. */
export class LogWriter {
  readonly #file: number
  readonly #life: string

  constructor(path: string, life: string) {
    this.#file = openSync(path, 'a')
    this.#life = life
  }

  write(line: Omit<LogLine, 'life' | 'position'>): void {
    // A line that its writer's death cuts off must not run into the next one.
    writeSync(this.#file, `\n${JSON.stringify({ life: this.#life, ...line })}\n`)
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** The log of all children, in the order written. */
export class LogReader {
  readonly path: string
  readonly #lines: LogLine[] = []
  #bytes = 0

  constructor(path: string) {
    this.path = path
    appendFileSync(path, '')
  }

  /** Complete lines so far. */
  lines(): readonly LogLine[] {
    const text = this.#unread()
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    this.#bytes += Buffer.byteLength(whole)
    for (const line of whole.split('\n')) {
      if (!line.endsWith('}')) continue
      this.#lines.push({ ...(JSON.parse(line) as LogLine), position: this.#lines.length })
    }
    return this.#lines
  }

  #unread(): string {
    const file = openSync(this.path, 'r')
    try {
      const unread = Buffer.alloc(fstatSync(file).size - this.#bytes)
      const length = readSync(file, unread, 0, unread.length, this.#bytes)
      return unread.toString('utf8', 0, length)
    } finally {
      closeSync(file)
    }
  }
}
