/*
 * Transports that break a promise, each in a way that transports really do, and the cases of the contract
 * that must notice.
 */
import { DELIVERY, LEASES, PACE } from './broken_delivery.ts'
import { FLEET, TENANTS, TURNS } from './broken_links.ts'
import { ROUTING, STEPS } from './broken_steps.ts'
import type { Defect } from './defect.ts'

export const DEFECTS: Defect[] = [
  ...STEPS,
  ...ROUTING,
  ...DELIVERY,
  ...PACE,
  ...LEASES,
  ...TURNS,
  ...TENANTS,
  ...FLEET,
]
