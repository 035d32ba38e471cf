/*
 * Reads of single runs that are asked for in the same moment, as one read.
 */
import type { WorkflowRun } from '../types/run.ts'

export class TogetherReader {
  readonly #readAll: (ids: string[]) => Promise<WorkflowRun[]>
  #next?: { ids: Set<string>; runs: Promise<Map<string, WorkflowRun>> }

  constructor(readAll: (ids: string[]) => Promise<WorkflowRun[]>) {
    this.#readAll = readAll
  }

  async read(id: string): Promise<WorkflowRun | undefined> {
    this.#next ??= this.#collect()
    this.#next.ids.add(id)
    const runs = await this.#next.runs
    return runs.get(id)
  }

  #collect() {
    const ids = new Set<string>()
    const runs = Promise.resolve().then(async () => {
      this.#next = undefined
      const found = await this.#readAll([...ids])
      return new Map(found.map((run) => [run.id, run]))
    })
    return { ids, runs }
  }
}
