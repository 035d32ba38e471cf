/*
 * Persisted schedules, by id.
 */
import { compareText } from '../../foundation/versions.ts'
import type { ScheduleRecord } from '../../types/schedule.ts'
import { decodeRow, encodeRow, patchRow, SCHEDULE_COLUMNS, type StoredSchedule } from './columns.ts'

/** Columns that always have a value: an `undefined` in a patch leaves them alone. */
const ALWAYS_SET = ['workflow', 'paused', 'createdAt', 'updatedAt'] as const

export class ScheduleTable {
  readonly #rows = new Map<string, StoredSchedule>()

  create(record: ScheduleRecord): boolean {
    if (this.#rows.has(record.id)) return false
    this.#rows.set(
      record.id,
      encodeRow<ScheduleRecord, typeof SCHEDULE_COLUMNS>(SCHEDULE_COLUMNS, record) as StoredSchedule
    )
    return true
  }

  update(id: string, patch: Partial<Omit<ScheduleRecord, 'id' | 'createdAt'>>): boolean {
    const row = this.#rows.get(id)
    if (!row) return false
    const changes: Partial<ScheduleRecord> = { ...patch }
    delete changes.id
    delete changes.createdAt
    this.#rows.set(id, patchRow(SCHEDULE_COLUMNS, row, changes, ALWAYS_SET))
    return true
  }

  get(id: string): ScheduleRecord | null {
    const row = this.#rows.get(id)
    return row ? decode(row) : null
  }

  /** By id. */
  list(paused: boolean | undefined): ScheduleRecord[] {
    return [...this.#rows.values()]
      .filter((row) => paused === undefined || row.paused === paused)
      .sort((a, b) => compareText(a.id, b.id))
      .map(decode)
  }

  delete(id: string): boolean {
    return this.#rows.delete(id)
  }
}

const decode = (row: StoredSchedule): ScheduleRecord =>
  decodeRow<ScheduleRecord, typeof SCHEDULE_COLUMNS>(SCHEDULE_COLUMNS, row)
