/*
 * Derived ids and tokens, and their inverses. Everything the protocol may repeat is named here from
 * what it belongs to, so repeating it finds what the first time made (invariant 6).
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'

/** A fresh random id. */
export const randomId = (): string => randomUUID()

/** A short random tag that tells two boots of one process name apart. */
export const bootNonce = (): string => randomBytes(4).toString('hex')

/** Longest id, name, tag or token a store keeps, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 255

export const stepIdOf = (runId: string, seq: number): string => `${runId}:${seq}`

/** The run of one window of a schedule. */
export const scheduledIdOf = (key: string, window: string): string => `sched:${key}:${window}`

/** Tag of every run of a schedule. */
export const scheduleTag = (key: string): string => `schedule:${key}`

export const childIdOf = (runId: string, seq: number): string => `${runId}.child.${seq}`

/** Id of one child of a fan; `wave` is absent when all of them start at once. */
export const fanChildIdOf = (
  runId: string,
  firstSeq: number,
  index: number,
  wave?: number
): string => `${runId}.all.${firstSeq}.${wave === undefined ? '' : `w${wave}.`}${index}`

/** Tag of the rows of a fan; tells its size and mode where the rows alone cannot. */
export const fanGroupOf = (
  firstSeq: number,
  fan: { size: number; waves: boolean; failFast: boolean }
): string => `all:${firstSeq}${fan.waves ? `:n${fan.size}` : ''}${fan.failFast ? ':ff' : ''}`

/** A failed member of such a fan decides it. */
export const isFailFastGroup = (group: string | undefined): boolean =>
  group?.endsWith(':ff') ?? false

/** The run id and link number of a continuation; link 0 is the run that was started. */
export function linkOf(runId: string): { origin: string; link: number } {
  const match = /^(.*)~(\d+)$/s.exec(runId)
  return match ? { origin: match[1], link: Number(match[2]) } : { origin: runId, link: 0 }
}

/** `r` → `r~1` → `r~2`: the id of the execution that follows a continue-as-new. */
export function nextLinkId(runId: string): string {
  const { origin, link } = linkOf(runId)
  return `${origin}~${link + 1}`
}

export const retryIdOf = (runId: string): string => `${runId}~retry~${randomUUID()}`

/** True for `runId` itself and for a later link of its chain. */
export function isLinkOf(candidate: string, runId: string): boolean {
  const later = linkOf(candidate)
  const first = linkOf(runId)
  return later.origin === first.origin && later.link >= first.link
}

/** The run whose retry this is, or undefined. */
export const retriedIdOf = (runId: string): string | undefined =>
  /^(.+)~retry~[^~]+$/s.exec(runId)?.[1]

/** The parent of a child id that the engine derived; undefined for ids chosen by callers. */
export const parentRunIdOf = (runId: string): string | undefined =>
  /^(.+)\.(?:child\.\d+|all\.\d+(?:\.w\d+)?\.\d+)(?:~\d+)?$/s.exec(runId)?.[1]

export const signalName = (token: string): string => `signal:${token}`
export const timeoutName = (token: string): string => `timeout:${token}`
export const childToken = (childRunId: string): string => `child:${childRunId}`
export const CHILD_ROW = 'signal:child:'
export const SPAWN_ROW = 'spawn:'

/** The child a row records, by its name; undefined for any other row. */
export function childOfRow(name: string): string | undefined {
  if (name.startsWith(CHILD_ROW)) return name.slice(CHILD_ROW.length)
  return name.startsWith(SPAWN_ROW) ? name.slice(SPAWN_ROW.length) : undefined
}

/** Longest id of a child run: its token and its row's name are longer. */
export const MAX_CHILD_ID_BYTES = 255 - 'signal:child:'.length
export const undoName = (step: string): string => `compensate:${step}`
export const eventKeyName = (key: string): string => `event:${key}`

/**
 * A token that fits the store: itself, or a readable prefix and a SHA-256 when `signal:<token>` would
 * exceed 255 bytes. Both sides of a signal pass through here.
 */
export function storableToken(token: string): string {
  if (Buffer.byteLength(signalName(token)) <= MAX_KEY_BYTES) return token
  const digest = createHash('sha256').update(token).digest('hex')
  let prefix = token.slice(0, 120)
  while (Buffer.byteLength(prefix) > 160) prefix = prefix.slice(0, -8)
  // Never cut a surrogate pair in half: the rest would not survive UTF-8.
  if (/[\uD800-\uDBFF]$/.test(prefix)) prefix = prefix.slice(0, -1)
  return `${prefix}#sha256:${digest}`
}

/** Ends the name under which the `deadLetter` method of a workflow class is registered. */
export const DEAD_LETTER_SUFFIX = '.dlq'
