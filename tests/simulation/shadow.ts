/*
 * The shadow: what the store holds, as of its last operation, and who is told of every change. Checks
 * read nothing else, so they cost no store operation and work on every store.
 */
import { membersOf } from '../../src/replay/folds.ts'
import { decodeCheckpoint } from '../../src/store/memory/checkpoint_table.ts'
import type { StoredCheckpoint, StoredRun } from '../../src/store/memory/columns.ts'
import type { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { decodeRun } from '../../src/store/memory/run_table.ts'
import type { Tables } from '../../src/store/memory/tables.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { WorkflowRun } from '../../src/types/run.ts'

/** The store operation behind a change. */
export interface Operation {
  process: string
  name: string
  args: unknown[]
}

export interface Watcher {
  runChanged(before: WorkflowRun | undefined, after: WorkflowRun, by: Operation): void
  rowChanged(before: StepCheckpoint | undefined, after: StepCheckpoint, by: Operation): void
}

/** Reads the runs and rows that changed since it last looked. */
interface Reader {
  runs(ids: Iterable<string>): WorkflowRun[] | Promise<WorkflowRun[]>
  rows(runId: string): StepCheckpoint[] | Promise<StepCheckpoint[]>
}

export class Shadow {
  readonly #reader: Reader
  readonly #runs = new Map<string, WorkflowRun>()
  readonly #rows = new Map<string, Map<number, StepCheckpoint>>()
  readonly #known = new Set<string>()
  watcher?: Watcher

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** A run of this id may exist from now on. */
  expect(runId: string): void {
    this.#known.add(runId)
  }

  run(runId: string): WorkflowRun | undefined {
    return this.#runs.get(runId)
  }

  runs(): WorkflowRun[] {
    return [...this.#runs.values()]
  }

  row(runId: string, seq: number): StepCheckpoint | undefined {
    return this.#rows.get(runId)?.get(seq)
  }

  rows(runId: string): StepCheckpoint[] {
    return [...(this.#rows.get(runId)?.values() ?? [])].sort((a, b) => a.seq - b.seq)
  }

  named(runId: string, name: string): StepCheckpoint | undefined {
    for (const row of this.#rows.get(runId)?.values() ?? []) if (row.name === name) return row
    return undefined
  }

  /** Looks at what an operation changed. */
  look(by: Operation): void | Promise<void> {
    const runs = this.#reader.runs(this.#known)
    if (runs instanceof Promise) return this.#lookLater(runs, by)
    for (const run of runs) this.#sawRun(run, by)
    for (const runId of this.#runs.keys()) {
      this.#sawRows(this.#reader.rows(runId) as StepCheckpoint[], by)
    }
  }

  async #lookLater(reading: Promise<WorkflowRun[]>, by: Operation): Promise<void> {
    for (const run of await reading) this.#sawRun(run, by)
    // Nothing else is under way: reading all of them together still reads one instant.
    const lists = [...this.#runs.keys()].map((runId) => this.#reader.rows(runId))
    for (const rows of await Promise.all(lists)) this.#sawRows(rows, by)
  }

  #sawRun(run: WorkflowRun, by: Operation): void {
    const before = this.#runs.get(run.id)
    this.#runs.set(run.id, run)
    this.watcher?.runChanged(before, run, by)
  }

  /** A folded wave is seen as the members that it stands for. */
  #sawRows(rows: StepCheckpoint[], by: Operation): void {
    for (const row of rows.flatMap(membersOf)) this.#sawRow(row, by)
  }

  #sawRow(row: StepCheckpoint, by: Operation): void {
    let rows = this.#rows.get(row.runId)
    if (!rows) this.#rows.set(row.runId, (rows = new Map()))
    const before = rows.get(row.seq)
    rows.set(row.seq, row)
    this.watcher?.rowChanged(before, row, by)
  }
}

/** Reads the tables of an in-memory store: a row that was not replaced is the same object. */
export function memoryReader(store: InMemoryStateStore): Reader {
  const { tables } = store as unknown as { tables: Tables }
  const seenRuns = new Map<string, StoredRun>()
  const seenRows = new Map<string, StoredCheckpoint>()
  return {
    runs: (ids) =>
      [...ids].flatMap((id) => {
        const run = tables.runs.get(id)
        if (!run || seenRuns.get(id) === run) return []
        seenRuns.set(id, run)
        return [decodeRun(run)]
      }),
    rows: (runId) =>
      tables.checkpoints.list(runId).flatMap((row) => {
        const key = `${row.seq}:${runId}`
        if (seenRows.get(key) === row) return []
        seenRows.set(key, row)
        return [decodeCheckpoint(row)]
      }),
  }
}

/** Reads any store through its port. */
export function portReader(store: StateStore): Reader {
  const seen = new Map<string, string>()
  const isNew = (key: string, value: unknown) => {
    const text = JSON.stringify(value)
    if (seen.get(key) === text) return false
    seen.set(key, text)
    return true
  }
  return {
    async runs() {
      const found = await store.listRuns({})
      return found.filter((run) => isNew(run.id, run))
    },
    async rows(runId) {
      const rows = await store.listCheckpoints(runId)
      return rows.filter((row) => isNew(`${row.seq}:${runId}`, row))
    },
  }
}
