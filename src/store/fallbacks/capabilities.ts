/*
 * Fallbacks of what cannot be made from the required members: the calls that fail say what is missing,
 * the others do nothing that anybody relies on (invariant 9).
 */
import { StoreCapabilityError } from '../../errors.ts'
import type { ScheduleRows } from '../ports/schedule_rows.ts'
import type { SchemaOwner } from '../ports/schema_owner.ts'
import type { Transactions } from '../ports/transactions.ts'
import type { WakeHints } from '../ports/wake_hints.ts'

export function transactions(): Transactions {
  return {
    async transaction() {
      throw new StoreCapabilityError(
        'ctx.transaction needs a store with transactions; this one has no `transaction` member. ' +
          'Use ctx.localStep, which runs at least once, or another store.'
      )
    },
  }
}

/** `missing` are the schedule members that the store lacks. */
export function scheduleRows(missing: string[]): ScheduleRows {
  const refuse = async (): Promise<never> => {
    throw new StoreCapabilityError(
      `Persisted schedules need a store that keeps them; this one lacks ${missing.join(', ')}. ` +
        'Declare the schedules in code, or use another store.'
    )
  }
  return {
    createSchedule: refuse,
    updateSchedule: refuse,
    getSchedule: refuse,
    listSchedules: refuse,
    deleteSchedule: refuse,
  }
}

export function schemaOwner(): SchemaOwner {
  return {
    async ensureSchema() {},
    async close() {},
  }
}

export function wakeHints(): WakeHints {
  return {
    async notifyWake() {},
    async onWake() {
      return async () => {}
    },
  }
}
