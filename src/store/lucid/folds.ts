/*
 * Folding a range of rows into one, under the lock of the run row: whoever deletes the run waits, or finds
 * the rows gone.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { IS_SETTLED, saveCheckpoint } from './checkpoints.ts'
import { numberOf } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Session } from '../../sql/session.ts'

export function compactCheckpoints(
  session: Session,
  runId: string,
  { fromSeq, toSeq }: { fromSeq: number; toSeq: number },
  folded: StepCheckpoint
): Promise<boolean> {
  const id = runId.toWellFormed()
  const inRange = `FROM ${T.checkpoints} WHERE run_id = ? AND seq BETWEEN ? AND ?`
  const values = [id, fromSeq, toSeq]
  return session.atomically(async (sql) => {
    await sql.run(`SELECT id FROM ${T.runs} WHERE id = ? ${sql.dialect.forUpdate}`, [id])
    const [counts] = await sql.run(
      `SELECT count(*) AS total, sum(CASE WHEN ${IS_SETTLED} THEN 0 ELSE 1 END) AS open ${inRange}`,
      values
    )
    if (numberOf(counts.total) === 0 || numberOf(counts.open) !== 0) return false
    await sql.run(`DELETE ${inRange}`, values)
    await saveCheckpoint(sql, folded)
    return true
  })
}
