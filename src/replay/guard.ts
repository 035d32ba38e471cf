/*
 * The guard: one table of what each primitive records at its positions. A row of another name or kind
 * means that the code changed under a running run. Every primitive passes through here, so that has one
 * meaning and one message.
 */
import { NonDeterminismError } from '../errors.ts'
import {
  CHILD_ROW,
  childToken,
  eventKeyName,
  isLinkOf,
  signalName,
  SPAWN_ROW,
  timeoutName,
} from '../foundation/ids.ts'
import type { CheckpointKind, StepCheckpoint } from '../types/checkpoint.ts'

/** Name and kind recorded at one position. */
export interface Mark {
  readonly name: string
  readonly kind: CheckpointKind
  /** The child may have continued as new: its row then names a later link. */
  readonly child?: string
  /** Name of the row while the position waits. */
  readonly whileOpen?: string
}

const local = (name: string): Mark => ({ name, kind: 'local' })
const signal = (token: string): Mark => ({ name: signalName(token), kind: 'signal' })

export const PATCH_PREFIX = 'patch:'
export const TASK_ROW = 'task:dispatch:'

/** What each primitive expects at its positions, in order. */
export const marks = {
  step: (name: string): Mark[] => [{ name, kind: 'remote' }],
  localStep: (name: string): Mark[] => [local(name)],
  transaction: (name: string): Mark[] => [local(name)],
  now: (): Mark[] => [local('now')],
  sideEffect: (): Mark[] => [local('sideEffect')],
  sleep: (): Mark[] => [{ name: 'sleep', kind: 'sleep' }],
  waitForSignal: (token: string, bounded: boolean): Mark[] =>
    bounded ? [{ name: timeoutName(token), kind: 'sleep' }, signal(token)] : [signal(token)],
  waitForEvent: (token: string, timeout: string | undefined): Mark[] =>
    timeout === undefined
      ? [signal(token)]
      : [{ name: timeoutName(timeout), kind: 'sleep' }, signal(token)],
  task: (name: string, token: string): Mark[] => [local(TASK_ROW + name), signal(token)],
  webhook: (token: string): Mark[] => [signal(token)],
  webhookTimeout: (token: string): Mark[] => [{ name: timeoutName(token), kind: 'sleep' }],
  breakpoint: (token: string, name: string): Mark[] => [{ ...signal(token), whileOpen: name }],
  callEntity: (token: string): Mark[] => [signal(token)],
  signalEntity: (name: string, key: string): Mark[] => [local(`entitysig:${name}:${key}`)],
  upsertSearchAttributes: (): Mark[] => [local('searchAttributes')],
  child: (childId: string): Mark[] => [{ ...signal(childToken(childId)), child: childId }],
  startChild: (childId: string): Mark[] => [local(SPAWN_ROW + childId)],
  setEvent: (key: string): Mark[] => [local(eventKeyName(key))],
  patched: (id: string): Mark[] => [local(PATCH_PREFIX + id)],
}

export type Primitive = keyof typeof marks | 'onUpdate' | 'continueAsNew' | 'all' | 'allSettled'

/** The error for a row that is not what the code asks for, or undefined when it is. */
export function mismatch(
  runId: string,
  row: StepCheckpoint,
  mark: Mark
): NonDeterminismError | undefined {
  if (row.kind === mark.kind && isNamed(row.name, mark)) return undefined
  return new NonDeterminismError(runId, row.seq, describe(mark), describe(row))
}

function isNamed(name: string, mark: Mark): boolean {
  if (name === mark.name || name === mark.whileOpen) return true
  if (mark.child === undefined || !name.startsWith(CHILD_ROW)) return false
  return isLinkOf(name.slice(CHILD_ROW.length), mark.child)
}

function describe(mark: Mark): string {
  return `"${mark.name}" (${mark.kind})`
}
