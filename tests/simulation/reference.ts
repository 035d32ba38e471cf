/*
 * The reference: an independent follower of a finished run. It knows the stored rows and the recorded
 * order, nothing of the replay core, and must come to the stored end.
 */
import { deferred, type Deferred } from '../../src/foundation/deferred.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import { type BodyOutput, NextRound, play } from './bodies.ts'
import { type Leaf, nameOf, type Program } from './programs.ts'
import { macrotask } from './virtual_time.ts'

export interface Followed {
  end?: { output: BodyOutput } | { error: string } | { next: true }
  /** Why it could not be followed. */
  stuck?: string
}

interface Open {
  leaf: Leaf
  seq: number
  rows: (StepCheckpoint | undefined)[]
  answer: Deferred
}

type Answer = { row: StepCheckpoint } & ({ value: unknown } | { error: string })

export async function follow(
  program: Program,
  round: number,
  rows: StepCheckpoint[]
): Promise<Followed> {
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  const open = new Set<Open>()
  const followed: Followed = {}
  let position = 0

  play(program, round, async (leaf) => {
    if (leaf.t === 'pause') return leaf.t
    const names = namesOf(leaf)
    const seq = position
    position += names.length
    const answer = deferred()
    const found = names.map((_, i) => bySeq.get(seq + i))
    open.add({ leaf, seq, rows: found, answer })
    found.forEach((row, i) => {
      if (!row || `${row.kind} ${row.name}` === names[i]) return
      followed.stuck ??= `position ${seq + i} holds ${row.kind} ${row.name}, not ${names[i]}`
    })
    const value = await answer.promise
    return value === undefined ? leaf.t : value
  }).then(
    (output) => (followed.end ??= { output }),
    (error: Error) => {
      followed.end ??= error instanceof NextRound ? { next: true } : { error: error.message }
    }
  )

  await macrotask()
  while (!followed.end && !followed.stuck) {
    const answered = [...open].flatMap((one) => {
      const answer = answerOf(one)
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
    if ('error' in answer) one.answer.reject(new Error(answer.error))
    else one.answer.resolve(answer.value)
    await macrotask()
  }
  return followed
}

/** Kinds and names at the positions of a leaf. */
function namesOf(leaf: Leaf): string[] {
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
    case 'signal': {
      const wait = `signal signal:${leaf.token}`
      return leaf.timeoutMs === undefined ? [wait] : [`sleep timeout:${leaf.token}`, wait]
    }
    case 'setEvent':
      return [`local event:${name}`]
    case 'patched':
      return [`local patch:${name}`]
    case 'pause':
      return []
  }
}

function answerOf({ leaf, rows }: Open): Answer | undefined {
  const row = rows.at(-1)
  if (!row) return undefined
  const { status, error, attempts, output } = row
  if (leaf.t === 'sleep') return { row, value: undefined }
  if (status === 'completed') return { row, value: leaf.t === 'setEvent' ? undefined : output }
  if (status !== 'failed' || attempts === 0) return undefined
  const final = leaf.t !== 'step' || attempts >= leaf.tries || error?.retryable === false
  return final ? { row, error: error?.message ?? 'failed' } : undefined
}
