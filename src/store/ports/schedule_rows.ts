/*
 * Role: persisted schedules. Optional: all five or none.
 */
import type { ScheduleRecord } from '../../types/schedule.ts'

export interface ScheduleRows {
  /** False for a taken id. */
  createSchedule(record: ScheduleRecord): Promise<boolean>
  /** False for an unknown id. Patch presence as for runs. */
  updateSchedule(
    id: string,
    patch: Partial<Omit<ScheduleRecord, 'id' | 'createdAt'>>
  ): Promise<boolean>
  getSchedule(id: string): Promise<ScheduleRecord | null>
  /** Ordered by id. */
  listSchedules(query?: { paused?: boolean }): Promise<ScheduleRecord[]>
  deleteSchedule(id: string): Promise<boolean>
}
