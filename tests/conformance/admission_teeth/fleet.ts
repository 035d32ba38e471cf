/*
 * Admission for the instances of a fleet, in memory: what the contract asks for, and small enough to be broken
 * in every way.
 */
import { type Clock, systemTimers } from '../../../src/foundation/clock.ts'
import { InMemoryAdmissionBackend } from '../../../src/flow/memory_admission.ts'
import type { AdmissionBackend } from '../../../src/flow/port.ts'
import type { AdmissionSettings } from '../../../src/testing/conformance.ts'
import { altered } from '../../helpers/altered.ts'

const TTL_MS = 60_000

interface Instance {
  ttlMs: number
  /** Its last sign of life, epoch ms. */
  seenAt: number
}

interface Slot {
  queue: string
  waiterId: string
  owner: Instance
}

/** What the instances of one case share. */
export class Fleet {
  readonly clock: Clock
  readonly #lines: InMemoryAdmissionBackend
  #slots: Slot[] = []

  constructor(clock: Clock) {
    this.clock = clock
    this.#lines = new InMemoryAdmissionBackend({ clock })
  }

  open({ instanceTtlMs = TTL_MS, standsStill = false }: AdmissionSettings): AdmissionBackend {
    const me: Instance = { ttlMs: instanceTtlMs, seenAt: this.clock() }
    const live = () => void (me.seenAt = this.clock())
    const die = standsStill ? () => {} : systemTimers.every(instanceTtlMs / 3, live)
    return altered<AdmissionBackend>(this.#lines, {
      tryAdmit: async (queue, request) => {
        live()
        await this.#bury()
        const answer = await this.#lines.tryAdmit(queue, request)
        const { waiterId } = request
        if (answer.admitted) {
          this.#slots = [...this.#without(queue, waiterId), { queue, waiterId, owner: me }]
        }
        return answer
      },
      release: async (queue, waiterId) => {
        this.#slots = this.#without(queue, waiterId)
        await this.#lines.release(queue, waiterId)
      },
      close: async () => die(),
    })
  }

  /** Gives back the slots of instances that were silent for too long. */
  async #bury(): Promise<void> {
    const dead = this.#slots.filter(({ owner }) => owner.seenAt + owner.ttlMs <= this.clock())
    this.#slots = this.#slots.filter((each) => !dead.includes(each))
    for (const { queue, waiterId } of dead) await this.#lines.release(queue, waiterId)
  }

  #without(queue: string, waiterId: string): Slot[] {
    return this.#slots.filter((each) => each.queue !== queue || each.waiterId !== waiterId)
  }
}
