/*
 * Counting what a real engine sends to a real database: BEGIN and COMMIT included, the test's own reads
 * excluded. Time stands still unless the test moves it, so that nothing is counted, or missing, because
 * the machine was slow; and tests learn from events that a run moved, never by asking the store.
 */
import type { Group } from '@japa/runner/core'
import type { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import type { TurnCommit, TurnVerdict } from '../../../src/store/ports/turn_commits.ts'
import type { StepCheckpoint } from '../../../src/types/checkpoint.ts'
import type { EngineEventType } from '../../../src/types/engine_event.ts'
import type { WorkflowFn } from '../../../src/types/ctx.ts'
import { countStatements, type StatementCounter } from '../../helpers/databases.ts'
import {
  type EngineOptions,
  type StoreKind,
  storesUnderTest,
  useWorld,
  type World,
  type WorldOfTest,
} from '../../helpers/engines.ts'
import type { Member } from '../../helpers/gated_store.ts'

/** What something cost. */
export interface Cost {
  statements: number
  texts: string[]
  /** Checkpoint rows that came back from the database. */
  rowsRead: number
  /** Rows written, by status. */
  written: Record<string, number>
}

/** SQLite always, Postgres when it is there. */
export async function countedStores(): Promise<StoreKind[]> {
  const kinds = await storesUnderTest({ fallbacks: false })
  return kinds.filter(({ dialect }) => dialect !== undefined)
}

/** Gives every test of a group empty tables and engines that are counted. */
export function useCounting(group: Group, kind: StoreKind) {
  const world = useWorld(group, kind)
  const counters: Counter[] = []
  group.each.teardown(() => {
    for (const counter of counters.splice(0)) counter.stop()
  })
  return {
    world,
    engine: (options: EngineOptions = {}) => world.engine(options),
    counter(engine: WorkflowEngine) {
      const counter = new Counter(world, engine)
      counters.push(counter)
      return counter
    },
  }
}

const CHECKPOINT_READS: Member[] = [
  'listCheckpoints',
  'listCheckpointsForReplay',
  'listCheckpointsAt',
  'getCheckpoints',
  'getCheckpointsForSettle',
  'settleTargets',
]

/** Counts one engine from its making on. */
export class Counter {
  readonly #world: World & WorldOfTest
  readonly #engine: WorkflowEngine
  readonly #statements: StatementCounter
  #rowsRead = 0
  #written: Record<string, number> = {}

  constructor(world: World & WorldOfTest, engine: WorkflowEngine) {
    this.#world = world
    this.#engine = engine
    this.#statements = countStatements(world.opened.database!.db)
    const gate = world.gate(engine)
    for (const member of CHECKPOINT_READS) {
      gate.around(member, async (proceed) => {
        const rows = (await proceed()) as unknown[]
        this.#rowsRead += rows.length
        return rows
      })
    }
    gate.around('getCheckpoint', async (proceed) => {
      const row = (await proceed()) as StepCheckpoint | null
      if (row) this.#rowsRead += 1
      return row
    })
    gate.around('commitTurn', async (proceed, [commit]) => {
      for (const { row } of (commit as TurnCommit).rows ?? []) {
        this.#written[row.status] = (this.#written[row.status] ?? 0) + 1
      }
      const verdict = (await proceed()) as TurnVerdict
      this.#rowsRead += verdict.stored.length
      return verdict
    })
  }

  /** What `work` costs, and everything that follows from it. */
  async of(work: () => Promise<unknown>): Promise<Cost> {
    this.#statements.reset()
    this.#rowsRead = 0
    this.#written = {}
    await work()
    await this.#world.quiet()
    return {
      statements: this.#statements.count,
      texts: [...this.#statements.texts],
      rowsRead: this.#rowsRead,
      written: this.#written,
    }
  }

  stop(): void {
    this.#statements.stop()
  }

  /** Resolves with the next such event of a run. */
  next(type: EngineEventType, runId: string): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#engine.subscribe((event) => {
        if (event.type !== type || event.runId !== runId) return
        stop()
        resolve()
      })
    })
  }

  /** Starts a run and waits until it is settled in this way. */
  async play(workflow: string, runId: string, until: EngineEventType = 'run.completed') {
    const end = this.next(until, runId)
    await this.#engine.start(workflow, null, runId)
    await end
  }
}

/** A body that does one thing `n` times. */
export function registerTimes(
  engine: WorkflowEngine,
  name: string,
  n: number,
  once: (ctx: Parameters<WorkflowFn>[0], i: number) => Promise<unknown>
): { bodies: number } {
  const seen = { bodies: 0 }
  engine.register(name, '1', async (ctx) => {
    seen.bodies += 1
    for (let i = 0; i < n; i++) await once(ctx, i)
    return 'done'
  })
  return seen
}
