/*
 * Tokens that the engine derives: what each kind of wait is addressed by. Base64 keeps colons out of the
 * encoded parts, so the segments of a token are always the same ones.
 */
import { createHash } from 'node:crypto'
import type { EventMatch } from './event_match.ts'
import { storableToken } from './ids.ts'
import { keyProblem } from './keys.ts'

export const taskToken = (runId: string, name: string): string => `task:${runId}:${name}`
export const updateToken = (runId: string, name: string): string => `update:${runId}:${name}`
export const webhookToken = (runId: string, seq: number): string => `wh:${runId}:${seq}`
export const breakpointToken = (runId: string, seq: number): string => `bp:${runId}:${seq}`
export const breakpointName = (label: string | undefined): string =>
  label === undefined ? 'breakpoint' : `breakpoint:${label}`

/** Run id and token of the entity's first run. */
export const entityToken = (name: string, key: string): string => `entity:${name}:${key}`
export const entityReplyToken = (runId: string, seq: number): string =>
  `entityreply:${runId}:${seq}`
/** Run id and token of what collects events for a workflow. */
export const accumulatorToken = (workflow: string): string => `__evtacc__:${workflow}`

/** What no entity can be addressed by; undefined when nothing is wrong. */
export function entityProblem(
  name: unknown,
  key: unknown,
  op: unknown
): { what: string; problem: string } | undefined {
  const parts = { 'the entity name': name, 'the entity key': key, 'the operation': op }
  for (const [what, value] of Object.entries(parts)) {
    const problem = keyProblem(value)
    if (problem) return { what, problem }
  }
  if ((name as string).includes(':')) {
    return { what: 'the entity name', problem: 'must not contain a colon' }
  }
  const problem = keyProblem(entityToken(name as string, key as string))
  return problem ? { what: 'the entity name and key', problem } : undefined
}

const encoded = (text: string): string => Buffer.from(text).toString('base64')
const decoded = (text: string): string => Buffer.from(text, 'base64').toString()

/** What every waiter on events of this name begins with. */
export const eventPrefix = (name: string): string => `event:${encoded(name)}:`

/** Longest name of an event, in bytes: a token that begins with it must fit a key. */
export const MAX_EVENT_NAME_BYTES = 120

/** The token of one wait; `hidden` when the match does not fit and stands in the position's row instead. */
export function eventToken(
  wait: { name: string; match: EventMatch | undefined },
  runId: string,
  seq: number
): { token: string; hidden: boolean } {
  const prefix = eventPrefix(wait.name)
  const token = `${prefix}${encoded(JSON.stringify(wait.match ?? {}))}:${runId}#${seq}`
  if (storableToken(token) === token) return { token, hidden: false }
  const digest = createHash('sha256').update(token).digest('hex')
  return { token: `${prefix}#sha256:${digest}`, hidden: true }
}

/** What an event waiter waits for, without `match` when its row says that; undefined for another token. */
export function readEventToken(token: string): { name: string; match?: EventMatch } | undefined {
  const parts = /^event:([^:]*):([^:]*):/s.exec(token)
  if (!parts) return undefined
  const name = decoded(parts[1])
  if (parts[2].startsWith('#')) return { name }
  try {
    return { name, match: JSON.parse(decoded(parts[2])) as EventMatch }
  } catch {
    return undefined
  }
}
