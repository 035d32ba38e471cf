/*
 * Persisted schedules, as stores keep them.
 */
export interface ScheduleRecord {
  id: string
  workflow: string
  /** Cadence, input and options; a payload to the store. */
  spec: unknown
  paused: boolean
  namespace?: string
  /** Epoch ms; informational. */
  lastFiredAt?: number
  createdAt: Date
  updatedAt: Date
}
