/*
 * What every transport does, as a table without a test runner: each case is a sentence and a function
 * that throws when the sentence does not hold. `assertTransportConformance` runs the cases that one
 * instance can show by itself. Waits are bounded polls; nothing here measures time.
 */
import type { Transport } from '../../transport/ports.ts'
import { lacking, type TransportCase } from './transport/case.ts'
import { DELIVERY_CASES } from './transport/delivery.ts'
import { FLEET_CASES } from './transport/fleet.ts'
import { LEASE_CASES } from './transport/leases.ts'
import { PACE_CASES } from './transport/pace.ts'
import { ROUTING_CASES } from './transport/routing.ts'
import { STEP_CASES } from './transport/steps.ts'
import { TENANT_CASES } from './transport/tenants.ts'
import { TURN_CASES } from './transport/turns.ts'
import { TransportSession } from './transport_session.ts'

export { TransportSession } from './transport_session.ts'
export type { TransportBench, TransportCase, TransportSettings } from './transport/case.ts'

/** Every case; a driver runs those that it can be shown to need. */
export const transportCases: readonly TransportCase[] = [
  ...STEP_CASES,
  ...ROUTING_CASES,
  ...DELIVERY_CASES,
  ...PACE_CASES,
  ...LEASE_CASES,
  ...TURN_CASES,
  ...TENANT_CASES,
  ...FLEET_CASES,
]

/**
 * Runs the cases that one instance can show by itself, over a transport that both dispatches and serves,
 * then closes it. Throws on the first one that does not hold, with its title. Ids start with `idPrefix`.
 */
export async function assertTransportConformance(
  transport: Transport,
  idPrefix = 'conf'
): Promise<void> {
  const session = new TransportSession(transport, idPrefix).listen()
  try {
    for (const each of transportCases) {
      const { title, needs, abilities = [], run } = each
      if (needs !== 'one' || abilities.length > 0 || lacking(transport, each).length > 0) continue
      await run({ session: () => Promise.resolve(session) }).catch((cause: unknown) => {
        throw new Error(`transport conformance: ${title}: ${(cause as Error).message}`, { cause })
      })
    }
  } finally {
    await transport.close?.()
  }
}
