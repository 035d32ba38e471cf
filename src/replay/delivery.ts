/*
 * The delivery rule: which settled await the body sees next. Recorded order first, lowest first; then
 * settle time, then position. Nothing passes a completion that already has a lower order but is not
 * durable yet. Deciding is O(log n) in the number of open awaits.
 */
import { Heap } from '../foundation/heap.ts'
import type { History } from './history.ts'
import type { Answer, OpenAwait, RowsOfCall } from './open_await.ts'

interface Candidate {
  entry: OpenAwait
  version: number
  answer: Answer
  order: number
}

interface Deadline {
  entry: OpenAwait
  version: number
  at: number
}

// Here, and not where the heaps are made: a kept body has both.
const isSeenFirst = (a: Candidate, b: Candidate): boolean =>
  a.order < b.order ||
  (a.order === b.order &&
    (a.answer.at < b.answer.at || (a.answer.at === b.answer.at && a.entry.seq < b.entry.seq)))

const isEarlier = (a: Deadline, b: Deadline): boolean => a.at < b.at

export class Delivery {
  readonly #history: History
  readonly #ready = new Heap(isSeenFirst)
  readonly #deadlines = new Heap(isEarlier)
  /** Ordered completions on their way to the store; their orders ascend. */
  #held: { seq: number; order: number }[] = []

  constructor(history: History) {
    this.#history = history
  }

  /** Reads the (changed) rows of an await and files it: answered, waiting for a time, or open. */
  assess(entry: OpenAwait, changed?: readonly number[]): void {
    entry.version += 1
    entry.reading = entry.read(this.#rowsOf(entry), changed)
    const { reading } = entry
    if (reading.state === 'open') {
      if (reading.dueAt !== undefined) this.#await(entry, reading.dueAt)
      return
    }
    const row = this.#history.at(reading.orderSeq)
    if (this.#history.isInFlight(reading.orderSeq)) {
      if (row?.order !== undefined) this.#held.push({ seq: reading.orderSeq, order: row.order })
      return
    }
    if (row?.order === undefined && reading.notBefore !== undefined) {
      this.#await(entry, reading.notBefore)
    } else {
      this.#offer(entry, reading)
    }
  }

  /** Moves what fell due at `now`; answers the open awaits that need their performer. */
  advance(now: number): OpenAwait[] {
    const attention: OpenAwait[] = []
    for (;;) {
      const next = this.#firstDeadline()
      if (!next || next.at > now) return attention
      this.#deadlines.pop()
      if (next.entry.reading.state === 'answered') this.#offer(next.entry, next.entry.reading)
      else attention.push(next.entry)
    }
  }

  /** The await to deliver next; undefined when none may be delivered. */
  take(): OpenAwait | undefined {
    for (;;) {
      const top = this.#ready.peek()
      if (!top) return undefined
      if (top.version !== top.entry.version) {
        this.#ready.pop()
        continue
      }
      while (this.#held.length > 0 && !this.#history.isInFlight(this.#held[0].seq)) {
        this.#held.shift()
      }
      if (this.#held.length > 0 && this.#held[0].order < top.order) return undefined
      this.#ready.pop()
      return top.entry
    }
  }

  /** The earliest time at which an open await becomes deliverable or needs attention. */
  nextDeadline(): number | undefined {
    return this.#firstDeadline()?.at
  }

  /** A delivered await leaves; whatever is queued for it is stale. */
  forget(entry: OpenAwait): void {
    entry.version += 1
  }

  #offer(entry: OpenAwait, answer: Answer): void {
    const order = this.#history.at(answer.orderSeq)?.order ?? Infinity
    this.#ready.push({ entry, version: entry.version, answer, order })
  }

  #await(entry: OpenAwait, at: number): void {
    this.#deadlines.push({ entry, version: entry.version, at })
  }

  #firstDeadline(): Deadline | undefined {
    for (;;) {
      const top = this.#deadlines.peek()
      if (!top || top.version === top.entry.version) return top
      this.#deadlines.pop()
    }
  }

  #rowsOf(entry: OpenAwait): RowsOfCall {
    return (index, landed) => {
      const seq = entry.seqAt(index)
      return landed && this.#history.isInFlight(seq) ? undefined : this.#history.at(seq)
    }
  }
}
