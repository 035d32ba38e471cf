/*
 * Cases that every store must pass and the Lucid store does not yet: they need members it lacks. The table
 * empties by itself as the members appear.
 */
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { STATE_STORE_CASES } from '../../src/testing/contracts/state_store.ts'

const lacks = (member: string): boolean => !(member in LucidStateStore.prototype)

export const CASES_OF_LATER_SLICES: Record<string, string> = Object.fromEntries(
  STATE_STORE_CASES.filter(({ kit, requires }) => kit && requires?.some(lacks)).map(
    ({ name, requires }) => [
      name,
      `the Lucid store has no ${requires!.filter(lacks).join(', ')} yet`,
    ]
  )
)
