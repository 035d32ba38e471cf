/*
 * What a case of the transport contract is, and what it may ask of a driver.
 */
import type { Timers } from '../../../foundation/clock.ts'
import type { Transport } from '../../../transport/ports.ts'
import type { TransportSession } from '../transport_session.ts'

/**
 * What a driver can be shown to do beyond having a member:
 * - `shared`: several transports meet on one backend.
 * - `leases`: a task outlives its worker. `open` honours `leaseMs`, `standsStill` and `maxStalledCount`, and
 *   `close` hands over what still runs.
 * - `fence`: what a worker answers that lost its task is dropped.
 * - `concurrency`: `open` honours `concurrency` and `resultConcurrency`.
 * - `priority`: the more urgent task is taken first.
 * - `descriptors`: `advertise` writes what a worker says of itself.
 * - `timers`: `open` honours `timers` for every timer that the driver sets itself.
 */
export type TransportAbility =
  'shared' | 'leases' | 'fence' | 'concurrency' | 'priority' | 'descriptors' | 'timers'

/** How a case wants a transport to be. */
export interface TransportSettings {
  namespace?: string
  /** Its name among workers; default one that no other has. */
  instanceId?: string
  /** Tasks at once; default what the driver does by default. */
  concurrency?: number
  /** Results in hand at once; default what the driver does by default. */
  resultConcurrency?: number
  /** How long it holds a task without a sign of life, and how often it looks for such tasks of others. */
  leaseMs?: number
  /** How often a task may silence a worker before it fails. */
  maxStalledCount?: number
  /** Takes work and gives no sign of life afterwards, as a process that stands still. */
  standsStill?: boolean
  timers?: Timers
}

/**
 * Opens transports on the private backend of one case. Results go to one engine, so only the first
 * session of a namespace listens as an engine does; the others serve.
 */
export interface TransportBench {
  session(config?: TransportSettings & { deferred?: boolean }): Promise<TransportSession>
  /** Writes what a worker says of itself under a token, as the text stands; ability `descriptors`. */
  advertise?(token: string, instanceId: string, text: string): Promise<void>
}

export interface TransportCase {
  title: string
  /** `one`: any used instance shows it. `fresh`: needs its own. `shared`: several on one backend. */
  needs: 'one' | 'fresh' | 'shared'
  /** Optional members that a transport must have for the case to apply. */
  members?: readonly (keyof Transport)[]
  abilities?: readonly TransportAbility[]
  run(bench: TransportBench): Promise<void>
}

type Asks = Pick<TransportCase, 'members' | 'abilities'>

export const one = (
  title: string,
  run: (session: TransportSession) => Promise<void>,
  asks: Asks = {}
): TransportCase => ({
  title,
  needs: 'one',
  ...asks,
  run: async (bench) => run(await bench.session()),
})

export const fresh = (
  title: string,
  run: TransportCase['run'],
  asks: Asks = {}
): TransportCase => ({ title, needs: 'fresh', ...asks, run })

export const shared = (
  title: string,
  run: TransportCase['run'],
  asks: Asks = {}
): TransportCase => ({
  title,
  needs: 'shared',
  ...asks,
  abilities: ['shared', ...(asks.abilities ?? [])],
  run,
})

/** The members of these that the transport does not have. */
export const lacking = (
  transport: Transport,
  { members = [] }: Pick<TransportCase, 'members'>
): (keyof Transport)[] => members.filter((name) => typeof transport[name] !== 'function')
