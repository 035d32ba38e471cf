/*
 * The reference: an independent follower of a finished run. It knows the stored rows and the recorded
 * order, nothing of the replay core, and must come to the stored end.
 */
import { GatherError } from '../../src/errors.ts'
import { deferred, type Deferred } from '../../src/foundation/deferred.ts'
import type { CompletionEnvelope, StepCheckpoint } from '../../src/types/checkpoint.ts'
import { type BodyOutput, NextRound, play, type WebhookLeaf } from './bodies.ts'
import { eventToken } from '../../src/foundation/tokens.ts'
import { ENTITY } from './entities.ts'
import { type FanLeaf, type Leaf, nameOf, type Program } from './programs.ts'
import { macrotask } from './virtual_time.ts'

export interface Followed {
  end?: { output: BodyOutput } | { error: string } | { next: true }
  /** Why it could not be followed. */
  stuck?: string
  /** What the body asked for, by first position. */
  asked: Map<number, Leaf>
}

interface Open {
  leaf: Leaf
  seq: number
  rows: (StepCheckpoint | undefined)[]
  answer: Deferred
}

type Answer = { row: StepCheckpoint } & ({ value: unknown } | { error: Error })

export async function follow(
  program: Program,
  round: number,
  runId: string,
  rows: StepCheckpoint[]
): Promise<Followed> {
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  const open = new Set<Open>()
  const followed: Followed = { asked: new Map() }
  const minted = new Map<number, number>()
  let position = 0

  const rowAt = (seq: number, name: string): StepCheckpoint | undefined => {
    const row = bySeq.get(seq)
    if (row && !isNamed(`${row.kind} ${row.name}`, name)) {
      followed.stuck ??= `position ${seq} holds ${row.kind} ${row.name}, not ${name}`
    }
    return row
  }
  const perform = async (leaf: Leaf) => {
    if (leaf.t === 'pause') return leaf.t
    if (leaf.t === 'fan' && leaf.size === 0) return []
    const seq = position
    followed.asked.set(seq, leaf)
    const names = namesOf(leaf, runId, leaf.t === 'webhook' ? minted.get(leaf.id)! : seq)
    position += names.length
    const answer = deferred()
    const found = names.map((name, i) => rowAt(seq + i, name))
    if (leaf.t === 'webhook') found.push(bySeq.get(minted.get(leaf.id)!))
    open.add({ leaf, seq, rows: found, answer })
    const value = await answer.promise
    return value === undefined ? leaf.t : value
  }
  const mint = ({ id }: WebhookLeaf) => {
    minted.set(id, position)
    rowAt(position, `signal signal:wh:${runId}:${position}`)
    position += 1
  }

  play(program, round, perform, mint).then(
    (output) => (followed.end ??= { output }),
    (error: Error) => {
      followed.end ??= error instanceof NextRound ? { next: true } : { error: error.message }
    }
  )

  await macrotask()
  while (!followed.end && !followed.stuck) {
    const answered = [...open].flatMap((one) => {
      const answer = answerOf(one, runId)
      return answer ? [{ one, answer }] : []
    })
    if (answered.length === 0) {
      followed.stuck = `nothing answers ${[...open].map(({ leaf }) => nameOf(leaf))}`
      break
    }
    const orderOf = ({ answer }: { answer: Answer }) => answer.row.order ?? Infinity
    answered.sort((a, b) => (orderOf(a) === orderOf(b) ? 0 : orderOf(a) - orderOf(b)))
    const { one, answer } = answered[0]
    if (open.size > 1 && answer.row.order === undefined) {
      followed.stuck = `several are open (${[...open].map((o) => o.seq)}), none has an order`
      break
    }
    open.delete(one)
    if ('error' in answer) one.answer.reject(answer.error)
    else one.answer.resolve(answer.value)
    await macrotask()
  }
  return followed
}

/** A child that continued as new is recorded under its last link, an open breakpoint under its label. */
const isNamed = (recorded: string, name: string): boolean =>
  recorded === name ||
  (name.startsWith(CHILD) && recorded.replace(/~\d+$/, '') === name) ||
  (name.startsWith('signal signal:bp:') && /^signal breakpoint:b\d+$/.test(recorded))

const CHILD = 'signal signal:child:'

/** Kinds and names at the positions of a leaf. */
function namesOf(leaf: Leaf, runId: string, seq: number): string[] {
  const name = nameOf(leaf)
  switch (leaf.t) {
    case 'step':
      return [`remote ${name}`]
    case 'local':
    case 'transaction':
      return [`local ${name}`]
    case 'now':
      return ['local now']
    case 'sideEffect':
      return ['local sideEffect']
    case 'sleep':
      return ['sleep sleep']
    case 'signal':
      return waitOn(leaf.token, leaf.timeoutMs)
    case 'update':
      return waitOn(`update:${runId}:${leaf.update}`, leaf.timeoutMs)
    case 'event': {
      const { event, match, timeoutMs } = leaf
      const last = timeoutMs === undefined ? seq : seq + 1
      const { token } = eventToken({ name: event, match }, runId, last)
      return waitOn(token, timeoutMs, `event:${event}`)
    }
    case 'task':
      return [`local task:dispatch:${name}`, `signal signal:task:${runId}:${name}`]
    case 'webhook':
      return leaf.timeoutMs === undefined ? [] : [`sleep timeout:wh:${runId}:${seq}`]
    case 'breakpoint':
      return [`signal signal:bp:${runId}:${seq}`]
    case 'attributes':
      return ['local searchAttributes']
    case 'callEntity':
      return [`signal signal:entityreply:${runId}:${seq}`]
    case 'signalEntity':
      return [`local entitysig:${ENTITY}:${leaf.key}`]
    case 'setEvent':
      return [`local event:${name}`]
    case 'patched':
      return [`local patch:${name}`]
    case 'child':
      return [`${CHILD}${runId}.child.${seq}`]
    case 'spawn':
      return [`local spawn:${runId}.x${leaf.id}`]
    case 'join':
      return [`${CHILD}${runId}.x${leaf.spawned}`]
    case 'fan':
      return Array.from({ length: leaf.size }, (_, index) =>
        leaf.program ? CHILD + memberId(leaf, runId, seq, index) : `remote ${name}`
      )
    case 'pause':
      return []
  }
}

function waitOn(token: string, timeoutMs: number | undefined, label = token): string[] {
  const wait = `signal signal:${token}`
  return timeoutMs === undefined ? [wait] : [`sleep timeout:${label}`, wait]
}

function answerOf({ leaf, seq, rows }: Open, runId: string): Answer | undefined {
  if (leaf.t === 'fan') return fanAnswer(leaf, runId, seq, rows)
  if (leaf.t === 'task') return taskAnswer(leaf, rows)
  const row = rows.at(-1)
  if (!row) return undefined
  if (leaf.t === 'callEntity') {
    return row.status === 'completed'
      ? enveloped(row, `"${leaf.op}" on entity "${ENTITY}:${leaf.key}"`)
      : undefined
  }
  if (leaf.t === 'sleep') return { row, value: undefined }
  if (leaf.t === 'child' || leaf.t === 'join') {
    const childId = leaf.t === 'join' ? `${runId}.x${leaf.spawned}` : `${runId}.child.${seq}`
    const end = endOf(row, 1)
    if (!end) return undefined
    return 'value' in end
      ? { row, value: end.value }
      : { row, error: new Error(`child "${childId}" failed: ${end.error}`) }
  }
  const { status, output } = row
  if (status === 'completed') return { row, value: SILENT.has(leaf.t) ? undefined : output }
  const end = endOf(row, leaf.t === 'step' ? leaf.tries : 1)
  return end && 'error' in end ? { row, error: new Error(end.error) } : undefined
}

/** Leaves that answer nothing, whatever their row holds. */
const SILENT = new Set<Leaf['t']>(['setEvent', 'breakpoint', 'attributes', 'signalEntity'])

function taskAnswer(leaf: Leaf, [handOver, report]: Open['rows']): Answer | undefined {
  const end = handOver && endOf(handOver, 1)
  if (!end) return undefined
  if ('error' in end) return { row: handOver, error: new Error(end.error) }
  return report?.status === 'completed' ? enveloped(report, `task "${nameOf(leaf)}"`) : undefined
}

function enveloped(row: StepCheckpoint, what: string): Answer {
  const end = row.output as CompletionEnvelope
  return end.ok
    ? { row, value: end.value }
    : { row, error: new Error(`${what} failed: ${end.error}`) }
}

type End = { value: unknown } | { error: string; code?: string; details?: unknown }

/** How a row ended, with so many attempts allowed; undefined while it did not. */
function endOf(
  { status, name, output, error, attempts }: StepCheckpoint,
  tries: number
): End | undefined {
  if (status === 'completed') {
    if (!name.startsWith('signal:child:')) return { value: output }
    const { ok, ...end } = output as CompletionEnvelope
    return end as End
  }
  if (status !== 'failed' || attempts === 0) return undefined
  if (attempts < tries && error?.retryable !== false) return undefined
  const { message = 'failed', code, details } = error ?? {}
  return { error: message, code, details }
}

/** The id of a fan's member: its child's, or its step's. */
function memberId(leaf: FanLeaf, runId: string, seq: number, index: number): string {
  if (!leaf.program) return `${runId}:${seq + index}`
  const { concurrency } = leaf
  const wave =
    concurrency === undefined ? '' : `w${Math.floor(index / Math.max(1, concurrency >> 1))}.`
  return `${runId}.all.${seq}.${wave}${index}`
}

function fanAnswer(
  leaf: FanLeaf,
  runId: string,
  seq: number,
  rows: (StepCheckpoint | undefined)[]
): Answer | undefined {
  const ends = rows.map((row) => row && endOf(row, leaf.tries))
  const idOf = (index: number) => memberId(leaf, runId, seq, index)
  const failures = ends.flatMap((end, index) =>
    end && 'error' in end ? [{ index, id: idOf(index), error: end.error, row: rows[index]! }] : []
  )
  if (leaf.mode === 'failFast' && failures.length > 0) {
    const orderOf = ({ row }: { row: StepCheckpoint }) => row.order ?? Infinity
    failures.sort((a, b) => (orderOf(a) === orderOf(b) ? 0 : orderOf(a) - orderOf(b)))
    return { row: failures[0].row, error: new GatherError([failures[0]], leaf.size) }
  }
  if (ends.includes(undefined)) return undefined
  const row = rows.find((one) => one?.order !== undefined) ?? rows[0]!
  if (leaf.mode === 'settled') {
    const value = ends.map((end, index) =>
      end && 'value' in end
        ? { status: 'fulfilled', value: end.value }
        : { status: 'rejected', id: idOf(index), ...end }
    )
    return { row, value }
  }
  if (failures.length > 0) return { row, error: new GatherError(failures, leaf.size) }
  return { row, value: ends.map((end) => (end && 'value' in end ? end.value : undefined)) }
}
