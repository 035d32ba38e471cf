/*
 * Runs one case of the transport contract over what a factory made for it.
 */
import { randomId } from '../../../foundation/ids.ts'
import type { Transport } from '../../../transport/ports.ts'
import { Sessions } from '../transport_session.ts'
import {
  lacking,
  type TransportAbility,
  type TransportBench,
  type TransportCase,
  type TransportSettings,
} from './case.ts'

/** What a factory makes for one case of the transport contract. */
export interface TransportUnderContract {
  /**
   * Another process on the backend of this case; called several times. The case closes what was opened.
   * Settings of abilities that are not listed may be ignored.
   */
  open(
    settings: TransportSettings & { onError(error: unknown): void }
  ): Transport | Promise<Transport>
  /** What the driver can be shown to do beyond its members; default nothing. */
  abilities?: readonly TransportAbility[]
  /** Writes what a worker says of itself under a token, as the text stands; ability `descriptors`. */
  advertise?(token: string, instanceId: string, text: string): Promise<void>
  /** Removes what the case kept. */
  cleanup?(): Promise<void> | void
}

/** The case is about members that the transport does not have. */
class DoesNotApply extends Error {}

/** Runs a case, or notes why it does not apply. */
export async function runTransportCase(
  each: TransportCase,
  made: TransportUnderContract,
  note: (line: string) => void
): Promise<void> {
  const opened: Transport[] = []
  try {
    const { abilities = [] } = made
    const missing = (each.abilities ?? []).filter((ability) => !abilities.includes(ability))
    if (missing.length > 0) return note(`abilities do not list ${missing.join(', ')}`)
    await each.run(benchOf(each, made, opened))
  } catch (error) {
    if (!(error instanceof DoesNotApply)) throw error
    note(error.message)
  } finally {
    await Promise.all(opened.map((transport) => transport.close?.()))
    await made.cleanup?.()
  }
}

function benchOf(
  each: TransportCase,
  { open, advertise }: TransportUnderContract,
  opened: Transport[]
): TransportBench {
  const sessions = new Sessions(`conf-${randomId().slice(0, 8)}`)
  return {
    advertise,
    async session({ deferred, ...settings } = {}) {
      const errors: unknown[] = []
      const transport = await open({ ...settings, onError: (error) => void errors.push(error) })
      opened.push(transport)
      const missing = lacking(transport, each)
      if (missing.length > 0) throw new DoesNotApply(`the transport has no ${missing.join(', ')}`)
      return sessions.over(transport, errors, { namespace: settings.namespace, deferred })
    },
  }
}
