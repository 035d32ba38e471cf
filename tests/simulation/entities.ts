/*
 * Entities: what every process serves under one name, and whether their states hold exactly the operations
 * that callers sent. An operation leaves who sent it in the state and answers its place there.
 */
import type { EntityConfig } from '../../src/types/entity.ts'
import type { CompletionEnvelope, StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { WorkflowRun } from '../../src/types/run.ts'
import { linkOf } from '../../src/foundation/ids.ts'
import { type Leaf, OWN_KEY } from './programs.ts'
import type { Shadow } from './shadow.ts'

export const ENTITY = 'ent'

interface Operation {
  who: string
}

interface State {
  log: string[]
}

type EntityLeaf = Extract<Leaf, { t: 'callEntity' | 'signalEntity' }>

const senderOf = (runId: string, { id }: Leaf): string => `${runId}#${id}`

export const operationOf = (runId: string, leaf: Leaf): Operation => ({
  who: senderOf(runId, leaf),
})

/** Its own for a caller whose place among others must not matter. */
export const keyOf = (runId: string, { id, key }: EntityLeaf): string =>
  key === OWN_KEY ? `${runId}#${id}` : key

export const isReplyTo = (runId: string, leaf: Leaf, value: unknown): boolean =>
  String(value).startsWith(`${senderOf(runId, leaf)} is `)

export const isEntityRun = ({ id }: Pick<WorkflowRun, 'id'>): boolean => id.startsWith('entity:')

/** `work` takes the time of an operation. */
export const entityConfig = (work: (who: string) => Promise<void>): EntityConfig<State> => ({
  initialState: () => ({ log: [] }),
  handlers: {
    add: async (state: State, { who }: Operation) => {
      state.log.push(who)
      await work(who)
      return `${who} is ${state.log.length}`
    },
    bad: (state: State, { who }: Operation) => {
      state.log.push(who)
      throw new Error(`operation ${who}`)
    },
  },
})

export interface EntitiesWorld {
  shadow: Shadow
  /** Operations from outside that were accepted. */
  told: ReadonlyMap<string, string>
  fail(kind: string, text: string): void
}

/** Final state by key, each link of a chain beginning where the one before it ended. */
export function entityLogs({ shadow, fail }: EntitiesWorld): Map<string, string[]> {
  const chains = new Map<string, WorkflowRun[]>()
  for (const run of shadow.runs().filter(isEntityRun)) {
    const [, , key] = linkOf(run.id).origin.split(':')
    chains.set(key, [...(chains.get(key) ?? []), run])
  }
  const logs = new Map<string, string[]>()
  for (const [key, links] of chains) {
    links.sort((a, b) => linkOf(a.id).link - linkOf(b.id).link)
    let log: string[] = []
    for (const run of links) {
      const { state } = run.input as { state?: { value: State } }
      const begun = state?.value.log ?? []
      if (String(begun) !== String(log)) fail('entity', `${run.id} began with ${begun}, not ${log}`)
      const row = shadow.rows(run.id).findLast(({ name }) => name === 'event:state')
      log = (row?.output as State | undefined)?.log ?? begun
    }
    logs.set(key, log)
    if (new Set(log).size < log.length) fail('entity', `${key} holds one twice: ${log}`)
  }
  return logs
}

/** Each accepted operation from outside is in the state of its key. */
export function verifyTold(world: EntitiesWorld, logs: ReadonlyMap<string, string[]>): void {
  for (const [who, key] of world.told) {
    if (!logs.get(key)?.includes(who)) world.fail('entity', `${key} was never told by ${who}`)
  }
}

/** What a caller recorded is what the entity did. */
export function verifyOperation(
  world: EntitiesWorld,
  logs: ReadonlyMap<string, string[]>,
  operation: { runId: string; leaf: EntityLeaf; row: StepCheckpoint | undefined }
): void {
  const { runId, leaf, row } = operation
  if (row?.status !== 'completed') return
  const who = senderOf(runId, leaf)
  const log = logs.get(leaf.key) ?? []
  const place = log.indexOf(who) + 1
  if (place > 0 !== (leaf.op === 'add')) {
    world.fail('entity', `${who} ${leaf.op} is at ${place} of ${leaf.key}: ${log}`)
  }
  if (leaf.t === 'signalEntity' || leaf.op === 'bad') return
  const { value } = row.output as Extract<CompletionEnvelope, { ok: true }>
  if (value !== `${who} is ${place}`) {
    world.fail('entity', `${who} was answered ${String(value)} and is at ${place}: ${log}`)
  }
}
