/*
 * A replay machine over a hand-made history, driven without a store: what a spec says is recorded is
 * recorded, and nothing else happens.
 */
import { createCtx } from '../../src/ctx/create_ctx.ts'
import { stepIdOf } from '../../src/foundation/ids.ts'
import { History } from '../../src/replay/history.ts'
import { Replay } from '../../src/replay/replay.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'

export const RUN = 'run'

type Fields = Partial<StepCheckpoint> & Pick<StepCheckpoint, 'seq' | 'name'>

function row(kind: StepCheckpoint['kind'], fields: Fields & { at?: number }): StepCheckpoint {
  const { at = 0, ...rest } = fields
  return {
    runId: RUN,
    stepId: stepIdOf(RUN, fields.seq),
    kind,
    status: 'completed',
    attempts: 1,
    enqueuedAt: new Date(at),
    startedAt: new Date(at),
    finishedAt: new Date(at),
    ...rest,
  }
}

export const local = (seq: number, name: string, more: Partial<Fields> & { at?: number } = {}) =>
  row('local', { seq, name, ...more })
export const remote = (seq: number, name: string, more: Partial<Fields> & { at?: number } = {}) =>
  row('remote', { seq, name, ...more })
export const sleep = (seq: number, wakeAt: number, more: Partial<Fields> = {}) =>
  row('sleep', { seq, name: 'sleep', wakeAt, ...more })
export const signal = (seq: number, token: string, more: Partial<Fields> & { at?: number } = {}) =>
  row('signal', { seq, name: `signal:${token}`, ...more })

export interface Machine {
  replay: Replay
  /** Lets the body run on as far as history answers it at `now`. */
  settle(now?: number): Promise<void>
  /** Rows that were not there before. */
  add(...rows: StepCheckpoint[]): Promise<void>
}

/** Starts `body` over `rows` and lets it run until it waits. */
export async function machine(
  rows: StepCheckpoint[] | History,
  body: (ctx: WorkflowCtx) => Promise<unknown>,
  now = 0
): Promise<Machine> {
  const history = rows instanceof History ? rows : new History(rows)
  const replay = new Replay({ runId: RUN, history })
  const ctx = createCtx({ replay, maxPayloadBytes: 1_000_000, transactions: true })
  replay.start(() => body(ctx))
  const settle = (at = now) => replay.settle(() => at)
  await settle()
  return {
    replay,
    settle,
    add: async (...added) => {
      replay.changed(replay.history.merge(added))
      await settle()
    },
  }
}
