/*
 * What a broken transport is: a sound one with something replaced, and the cases that must notice.
 */
import type { Transport } from '../../../src/transport/ports.ts'
import {
  type QueueAdapter,
  QueueTransport,
  type QueueTransportConfig,
} from '../../../src/transport/queue/queue_transport.ts'
import type { RemoteTask, StepResult } from '../../../src/wire/messages.ts'
import { altered } from '../../helpers/altered.ts'

/** What the processes of one case have in common. */
export interface World {
  /** The ear of the engine. */
  hear?: (result: StepResult) => Promise<void>
  /** Steps and workflows that are served by somebody. */
  served: Set<string>
  /** Steps that were sent. */
  sent: Set<string>
  /** Handlers of a transport that is closed. */
  undead: Map<string, (input: unknown) => unknown>
}

export type Ear<M> = (handler: (message: M) => Promise<void>) => void

export interface Defect {
  /** The transport that … */
  what: string
  /** Titles of the cases that notice. */
  noticedBy: string[]
  config?(config: QueueTransportConfig): QueueTransportConfig
  adapter?(adapter: QueueAdapter): Partial<QueueAdapter>
  transport?(transport: QueueTransport, world: World): Partial<Transport>
}

export function open(
  { config, adapter, transport }: Defect,
  world: World
): (sound: QueueTransportConfig & { adapter: QueueAdapter }) => Transport {
  return (sound) => {
    const broken = adapter ? altered(sound.adapter, adapter(sound.adapter)) : sound.adapter
    const settings = { ...sound, adapter: broken }
    const made = new QueueTransport(config ? config(settings) : settings)
    return transport ? altered<Transport>(made, transport(made, world)) : made
  }
}

/** What its ear hears is changed. */
export const hears = <M>(listen: Ear<M>, change: (message: M) => M): Ear<M> => {
  return (handler) => listen((message) => handler(change(message)))
}

export const answers = (
  what: string,
  noticedBy: string,
  change: (result: StepResult) => StepResult
): Defect => ({
  what,
  noticedBy: [noticedBy],
  transport: (it) => ({ onResult: hears<StepResult>((ear) => it.onResult(ear), change) }),
})

export const sends = (
  what: string,
  noticedBy: string,
  change: (task: RemoteTask) => RemoteTask
): Defect => ({
  what,
  noticedBy: [noticedBy],
  transport: (it) => ({ dispatch: (task) => it.dispatch(change(task)) }),
})

export const configured = (
  what: string,
  noticedBy: string[],
  config: (given: QueueTransportConfig) => QueueTransportConfig
): Defect => ({ what, noticedBy, config })

/** Jobs of a name come twice. */
export const doubles = (name: string, noticedBy: string): Defect => ({
  what: `delivers each ${name} twice`,
  noticedBy: [noticedBy],
  adapter: (it) => ({
    pushOn: async (queue, job) => {
      await it.pushOn(queue, job)
      if (job.name === name) await it.pushOn(queue, { ...job, id: `${job.id} again` })
    },
  }),
})

export const without = <T extends object>(from: T, ...keys: (keyof T)[]): T =>
  Object.fromEntries(Object.entries(from).filter(([key]) => !keys.includes(key as keyof T))) as T
