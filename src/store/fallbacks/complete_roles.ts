/*
 * What a fallback is written against: the completed store itself. Each fallback comes down to required
 * members, by way of a narrower optional one where the store may have that natively.
 */
import type { OptionalRoles, RequiredRoles } from '../state_store.ts'

export interface CompleteRoles extends RequiredRoles, OptionalRoles {}
