/*
 * What a broken admission backend is: instances of a sound fleet with something replaced, and the cases that
 * must notice.
 */
import type { Clock } from '../../../src/foundation/clock.ts'
import type { AdmissionBackend, AdmissionRequest, QueueConfig } from '../../../src/flow/port.ts'
import type { AdmissionSettings, AdmissionUnderContract } from '../../../src/testing/conformance.ts'
import { altered } from '../../helpers/altered.ts'
import { Fleet } from './fleet.ts'

/** What the instances of one case have in common. */
export interface World {
  clock: Clock
  /** Waiters that hold a slot, and the number of the instance that they asked first. */
  holders: Map<string, number>
  /** Waiters in line, and the number of the instance that they asked last. */
  waiting: Map<string, number>
  /** The number of the instance that released something last. */
  releasing?: number
}

export interface Defect {
  /** The backend that … */
  what: string
  /** Titles of the cases that notice. */
  noticedBy: string[]
  /** What is replaced in the instance with this number. */
  members?(it: AdmissionBackend, world: World, me: number): Partial<AdmissionBackend>
  settings?(given: AdmissionSettings): AdmissionSettings
  /** Every instance has queues of its own. */
  apart?: true
}

/** What a factory of the admission contract makes; without a defect it is sound. */
export function inMemory(clock: Clock, defect?: Defect): AdmissionUnderContract {
  const world: World = { clock, holders: new Map(), waiting: new Map() }
  const fleet = new Fleet(clock)
  let count = 0
  return {
    open: (settings) => {
      const me = count++
      const home = defect?.apart ? new Fleet(clock) : fleet
      const it = noting(home.open(defect?.settings?.(settings) ?? settings), world, me)
      return defect?.members ? altered(it, defect.members(it, world, me)) : it
    },
    abilities: ['shared', 'leases'],
  }
}

function noting(it: AdmissionBackend, { holders, waiting }: World, me: number): AdmissionBackend {
  return altered(it, {
    tryAdmit: async (queue, request) => {
      const answer = await it.tryAdmit(queue, request)
      const { waiterId } = request
      if (!answer.admitted) waiting.set(waiterId, me)
      else if (!holders.has(waiterId)) holders.set(waiterId, me)
      if (answer.admitted) waiting.delete(waiterId)
      return answer
    },
    release: async (queue, waiterId) => {
      holders.delete(waiterId)
      waiting.delete(waiterId)
      await it.release(queue, waiterId)
    },
  })
}

export const registers = (
  what: string,
  noticedBy: string[],
  change: (config: QueueConfig) => QueueConfig
): Defect => ({
  what,
  noticedBy,
  members: (it) => ({ registerQueue: (config) => it.registerQueue(change(config)) }),
})

export const asks = (
  what: string,
  noticedBy: string[],
  change: (request: AdmissionRequest, me: number) => AdmissionRequest
): Defect => ({
  what,
  noticedBy,
  members: (it, _, me) => ({
    tryAdmit: (queue, request) => it.tryAdmit(queue, change(request, me)),
  }),
})

/** Denials are changed, and what they say. */
export const denies = (
  what: string,
  noticedBy: string[],
  retryAt: (told: number, world: World) => number
): Defect => ({
  what,
  noticedBy,
  members: (it, world) => ({
    tryAdmit: async (queue, request) => {
      const answer = await it.tryAdmit(queue, request)
      return answer.admitted ? answer : { admitted: false, retryAt: retryAt(answer.retryAt, world) }
    },
  }),
})
