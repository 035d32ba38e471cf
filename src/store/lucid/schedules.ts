/*
 * Persisted schedules, one row and one statement each. That a schedule exists or is taken is decided by
 * the statement that writes (invariant 4).
 */
import type { ScheduleRecord } from '../../types/schedule.ts'
import {
  listed,
  readSchedule,
  SCHEDULE_COLUMNS,
  scheduleColumns,
  schedulePatchColumns,
} from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Sql } from '../../sql/session.ts'
import { insertNew } from './writes.ts'

const COLUMNS = listed(SCHEDULE_COLUMNS)

export async function createSchedule(sql: Sql, record: ScheduleRecord): Promise<boolean> {
  const columns = scheduleColumns(record)
  return insertNew(
    sql,
    `INSERT INTO ${T.schedules} (${COLUMNS}) VALUES (${SCHEDULE_COLUMNS.map(() => '?').join(', ')})`,
    SCHEDULE_COLUMNS.map((column) => columns[column])
  )
}

export async function updateSchedule(
  sql: Sql,
  id: string,
  patch: Partial<ScheduleRecord>
): Promise<boolean> {
  const columns = schedulePatchColumns(patch)
  const sets = Object.keys(columns).map((column) => `${column} = ?`)
  if (sets.length === 0) return (await getSchedule(sql, id)) !== null
  const { rows } = await sql.change(`UPDATE ${T.schedules} SET ${sets.join(', ')} WHERE id = ?`, [
    ...Object.values(columns),
    id.toWellFormed(),
  ])
  return rows > 0
}

export async function getSchedule(sql: Sql, id: string): Promise<ScheduleRecord | null> {
  const [row] = await sql.run(`SELECT ${COLUMNS} FROM ${T.schedules} WHERE id = ?`, [
    id.toWellFormed(),
  ])
  return row ? readSchedule(row) : null
}

/** Ordered by id. */
export async function listSchedules(
  sql: Sql,
  { paused }: { paused?: boolean }
): Promise<ScheduleRecord[]> {
  const rows =
    paused === undefined
      ? await sql.run(`SELECT ${COLUMNS} FROM ${T.schedules} ORDER BY id`, [])
      : await sql.run(`SELECT ${COLUMNS} FROM ${T.schedules} WHERE paused = ? ORDER BY id`, [
          paused ? 1 : 0,
        ])
  return rows.map(readSchedule)
}

export async function deleteSchedule(sql: Sql, id: string): Promise<boolean> {
  const { rows } = await sql.change(`DELETE FROM ${T.schedules} WHERE id = ?`, [id.toWellFormed()])
  return rows > 0
}
