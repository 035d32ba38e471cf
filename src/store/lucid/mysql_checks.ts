/*
 * What must not be in the way of a script, read under lock: the rows that exist stay as they are until its
 * end, and new ones come only under the lock of their run.
 */
import type { SignalWaiter } from '../../types/checkpoint.ts'
import { IS_SETTLED } from './checkpoints.ts'
import type { Binding } from '../../sql/dialect.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Statement } from './scripts.ts'
import { exactWaiter } from './signals.ts'

interface Position {
  row: { seq: number }
  retryOf?: number
}

/** None of the positions is settled, but for the failed rows that a retry may replace. */
export function positionsOpen(runId: string, positions: Position[]): Statement {
  const retries = positions.filter(({ retryOf }) => retryOf !== undefined)
  const replaced = retries.map(() => `(status = 'failed' AND seq = ? AND attempts = ?)`)
  const closed = [IS_SETTLED, ...(retries.length > 0 ? [`NOT (${replaced.join(' OR ')})`] : [])]
  const bindings: Binding[] = retries.flatMap(({ row, retryOf }) => [row.seq, retryOf!])
  return {
    text: `coalesce(sum(${closed.join(' AND ')}), 0) = 0 FROM ${T.checkpoints}
      WHERE run_id = ? AND seq IN (?) FOR UPDATE`,
    bindings: [...bindings, runId, positions.map(({ row }) => row.seq)],
  }
}

/** No payload lies for one of the tokens. */
export const nothingBuffered = (tokens: string[]): Statement => ({
  text: `count(*) = 0 FROM ${T.bufferedSignals} WHERE token IN (?)`,
  bindings: [tokens.map((token) => token.toWellFormed())],
})

/** Every one of the payloads. */
export const payloadsLie = (ids: string[]): Statement => ({
  text: `count(*) = ? FROM ${T.bufferedSignals} WHERE id IN (?) FOR UPDATE`,
  bindings: [ids.length, ids],
})

/** Exactly this waiter. */
export const waiterStands = (waiter: SignalWaiter): Statement => ({
  text: `count(*) FROM ${T.signalWaiters} WHERE token = ? AND run_id = ? AND seq = ? FOR UPDATE`,
  bindings: exactWaiter(waiter),
})
