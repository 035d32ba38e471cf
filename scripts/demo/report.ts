/*
 * What the shop tells about itself.
 */

/** The answer of GET /report. */
export interface Report {
  orders: OrderReport[]
  runs: number
  /** Runs that are not at their end. */
  unfinished: number
}

export interface OrderReport {
  id: string
  status: string
  run: { status: string; error?: string; lockedBy?: string } | null
  steps: Position[]
  ledger: LedgerEntry[]
}

/** A position of a run's history; undos are negative. */
export interface Position {
  seq: number
  name: string
  kind: string
  status: string
}

export interface LedgerEntry {
  kind: string
  cents: number
}

/** A line of the journal, in which bodies note that they run. */
export interface JournalLine {
  event: 'begin' | 'end' | 'error'
  order: string
  body: string
  process: string
}

/** The positions of the body in order, then the undos in the order in which they ran. */
export function chronological(steps: Position[]): Position[] {
  const forward = steps.filter(({ seq }) => seq >= 0).sort((a, b) => a.seq - b.seq)
  const undos = steps.filter(({ seq }) => seq < 0).sort((a, b) => b.seq - a.seq)
  return [...forward, ...undos]
}

/** The processes in which a body began, once for every execution. */
export function executionsOf(journal: JournalLine[], order: string, body: string): string[] {
  return journal
    .filter((line) => line.event === 'begin' && line.order === order && line.body === body)
    .map((line) => line.process)
}
