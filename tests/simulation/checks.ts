/*
 * Checks on every change of the store, and on who made it. Each breach is reported under a short kind.
 */
import { isSettledStatus, type StepCheckpoint } from '../../src/types/checkpoint.ts'
import { isTerminalStatus, type SearchAttributes, type WorkflowRun } from '../../src/types/run.ts'
import type { StepError } from '../../src/foundation/failure.ts'
import type { LeaseFence } from '../../src/store/ports/transactions.ts'
import type { TurnCommit, TurnVerdict } from '../../src/store/ports/turn_commits.ts'
import { isFailFastGroup, linkOf, parentRunIdOf } from '../../src/foundation/ids.ts'
import type { Payloads } from './payloads.ts'
import type { Operation, Shadow, Watcher } from './shadow.ts'
import type { Slots } from './slots.ts'
import type { VirtualTime } from './virtual_time.ts'

/** How long news may lie before somebody takes the run, in ms. */
const PATIENCE_MS = 3000
const ORPHAN_MS = 5000
/** Longer than any read takes. */
const SLOW_MS = 1000

export interface ChecksOptions {
  shadow: Shadow
  time: VirtualTime
  /** No faults, and polls are rare: whoever causes news must see to it. */
  passive: boolean
  payloads: Payloads
  slots: Slots
  /** Some process may be unable to run a workflow: then news may wait for another one. */
  refusing: boolean
  fail(kind: string, text: string): void
  note(text: () => string): void
}

export class Checks implements Watcher {
  readonly #options: ChecksOptions
  /** Runs that were asked to undo what they did. */
  readonly intents = new Set<string>()
  /** When the undo list of a run was recorded, and when rows were settled. */
  readonly #unwoundAt = new Map<string, number>()
  readonly #settledAt = new Map<string, number>()
  /** Rows settled from outside that no turn has read yet. */
  readonly #news = new Map<string, Map<number, number>>()
  readonly #stampedAt = new Map<string, number>()
  readonly #reopenedAt = new Map<string, number>()
  readonly #endedAt = new Map<string, number>()
  readonly #attributesAtFirst = new Map<string, SearchAttributes | undefined>()
  #held?: WorkflowRun

  constructor(options: ChecksOptions) {
    this.#options = options
  }

  /** Before an operation takes effect. */
  before({ name, args }: Operation): void {
    this.#held = undefined
    if (name === 'createRun') this.#options.shadow.expect((args[0] as WorkflowRun).id)
    if (name === 'commitTurn') {
      const { runs = [], children = [] } = args[0] as TurnCommit
      for (const run of [...runs, ...children]) this.#options.shadow.expect(run.id)
      this.#held = this.#options.shadow.run((args[0] as TurnCommit).runId)
    } else if (name === 'commit') {
      const [[row]] = args as [StepCheckpoint[]]
      if (row) this.#held = this.#options.shadow.run(row.runId)
    }
  }

  /** Whether a row was settled well before the last unwind of its run began, or the run ended. */
  wasSettledBeforeUnwind({ runId, seq }: StepCheckpoint): boolean {
    const settledAt = this.#settledAt.get(`${runId}#${seq}`) ?? 0
    const begun = this.#unwoundAt.get(runId) ?? this.#endedAt.get(runId) ?? 0
    return settledAt + SLOW_MS < begun
  }

  attributesAtFirst(runId: string): SearchAttributes | undefined {
    return this.#attributesAtFirst.get(runId)
  }

  /** After it. */
  after(by: Operation, answer: unknown): void {
    const { name, args } = by
    this.#options.payloads.after(by, answer)
    if (name === 'commitTurn') void this.#committed(by, args[0] as TurnCommit, answer)
    if (name === 'commit') this.#transacted(by)
    if (name === 'listCheckpointsForReplay') this.#news.delete(args[0] as string)
    if (name === 'listCheckpointsAt') this.#read(args as [string, number[], number])
  }

  runChanged(before: WorkflowRun | undefined, after: WorkflowRun, by: Operation): void {
    const { note, time } = this.#options
    const { id, status } = after
    if (before?.status !== status || before?.lockedBy !== after.lockedBy) {
      note(() => `  run ${id} ${before?.status ?? '–'} → ${describe(after)} by ${by.process}`)
    }
    if (after.error && !same(before?.error, after.error)) this.#explained(id, after.error)
    if (!before) this.#attributesAtFirst.set(id, after.searchAttributes)
    else if (!same(before.searchAttributes, after.searchAttributes)) this.#attributed(after, by)
    if (before && isTerminalStatus(before.status)) this.#terminal(before, after, by)
    if (isTerminalStatus(status) && before?.status !== status) this.#endedAt.set(id, time.now)
    if (status === 'suspended' && after.wakeAt === undefined && !after.wakeRequestedAt) {
      this.#fail('nowake', `${id} is parked without a wake`)
    }
    if (after.cancelCompensates && !isTerminalStatus(status)) this.intents.add(id)
    if (after.wakeRequestedAt === undefined) this.#stampedAt.delete(id)
    else if (!this.#stampedAt.has(id)) this.#stampedAt.set(id, time.now)
    if (before && status === 'running' && before.status !== status) this.#orphaned(after)
    const claimed = by.name === 'claimRun' || by.name === 'claimDueRuns'
    if (claimed && before && status === 'running') this.#claimed(before)
  }

  rowChanged(before: StepCheckpoint | undefined, after: StepCheckpoint, by: Operation): void {
    const { note, time } = this.#options
    const where = `${after.runId}#${after.seq}`
    note(() => `  row ${where} ${describeRow(before)} → ${describeRow(after)} by ${by.process}`)
    if (before && after.seq >= 0 && !isSamePosition(before, after)) {
      this.#fail('position', `${where}: ${before.name} is overwritten by ${after.name}`)
    }
    if (after.error && !same(before?.error, after.error)) this.#explained(where, after.error)
    if (before && isSettledStatus(before.status)) this.#settled(before, after, by)
    else if (isSettledStatus(after.status)) {
      this.#settledAt.set(where, time.now)
      if (after.status === 'completed') this.#options.payloads.completed(after, by)
    }
    this.#options.slots.rowChanged(before, after, by)
    if (after.seq === -1 && after.attempts === 0) this.#unwoundAt.delete(after.runId)
    else if (after.seq === -1 && !before?.attempts) this.#unwoundAt.set(after.runId, time.now)
    this.#ordered(before, after, by)
    if (OUTSIDE.has(by.name) && isSettledStatus(after.status)) {
      const news = this.#news.get(after.runId) ?? new Map<number, number>()
      this.#news.set(after.runId, news.set(after.seq, time.now))
    }
  }

  /** Terminal is terminal, but for an operator's verb (invariant 3). */
  #terminal(before: WorkflowRun, after: WorkflowRun, by: Operation): void {
    const reopened = before.status === 'failed' || before.status === 'dead'
    if (before.status === after.status) {
      if (same(before.output, after.output) && same(before.error, after.error)) return
      this.#fail('terminal', `${after.id} ended as ${before.status} and changed`)
    } else if (reopened && by.name === 'updateRunIf' && after.status === 'pending') {
      this.#news.delete(after.id)
      this.#reopenedAt.set(after.id, this.#options.time.now)
    } else {
      this.#fail('terminal', `${after.id}: ${before.status} → ${after.status} by ${by.name}`)
    }
  }

  /** A settled row stays, but for a retry of exactly this failure and an operator's reset. */
  #settled(before: StepCheckpoint, after: StepCheckpoint, by: Operation): void {
    const where = `${after.runId}#${after.seq}`
    if (same(outcome(before), outcome(after))) return
    if (by.name === 'commit') {
      const [, fence] = by.args as [unknown, LeaseFence?]
      const operator = fence?.owner.endsWith('/operator')
      if (operator && (before.status === 'failed' || after.seq < 0)) return
      if (operator && isFailedChild(before) && after.status === 'failed') return
      // A transaction that a retry runs again: its failure was taken back.
      if (before.status === 'failed' && before.attempts === 0) return
    }
    if (by.name === 'commitTurn' && before.status === 'failed') {
      const write = (by.args[0] as TurnCommit).rows?.find(({ row }) => row.seq === after.seq)
      if (write?.retryOf === before.attempts) return
    }
    const change = `${describeRow(before)} → ${describeRow(after)}`
    this.#fail('settled', `${where}: ${change} by ${by.name} of ${by.process}`)
  }

  /** Attributes change in the commit that records it. */
  #attributed({ id }: WorkflowRun, by: Operation): void {
    const { rows = [] } = by.name === 'commitTurn' ? (by.args[0] as TurnCommit) : {}
    const recorded = rows.some(
      ({ row }) => row.name === 'searchAttributes' && row.status === 'completed'
    )
    if (!recorded) this.#fail('attributes', `${id}: changed by ${by.name} of ${by.process}`)
  }

  /** Whatever fails says why: one of the failures that a world contains. */
  #explained(where: string, error: StepError): void {
    if (!EXPECTED_ERROR.test(error.message)) this.#fail('error', `${where}: ${error.message}`)
  }

  #ordered(before: StepCheckpoint | undefined, after: StepCheckpoint, by: Operation): void {
    const where = `${after.runId}#${after.seq}`
    if (before?.order !== undefined && before.order !== after.order) {
      const write =
        by.name === 'commitTurn'
          ? (by.args[0] as TurnCommit).rows?.find(({ row }) => row.seq === after.seq)
          : undefined
      const verdict = after.order === undefined && write?.retryOf === 0
      if (!verdict) this.#fail('stamp', `${where}: order ${before.order} → ${after.order}`)
    }
    if (after.order === undefined || before?.order === after.order) return
    for (const other of this.#options.shadow.rows(after.runId)) {
      if (other.seq !== after.seq && other.order === after.order) {
        this.#fail('orders', `${where} and #${other.seq} both have order ${after.order}`)
      }
    }
  }

  /** One executor (invariant 1): whoever wrote held the run under the turn it named. */
  #committed(by: Operation, commit: TurnCommit, answer: unknown): void {
    const held = this.#held
    const judge = (verdict: TurnVerdict) => {
      if (!verdict?.applied || !held) return
      const { owner, turn, runId } = commit
      // What stood there is told with the answer, as a read would tell it.
      for (const { seq } of verdict.stored) this.#news.get(runId)?.delete(seq)
      if (held.lockedBy !== owner || held.turns !== turn) {
        const holder = `${held.lockedBy} turn ${held.turns}`
        this.#fail('fence', `${runId}: ${owner} turn ${turn} wrote under ${holder}`)
      } else if (isTerminalStatus(held.status)) {
        this.#fail('fence', `${runId}: ${by.process} wrote on a ${held.status} run`)
      }
    }
    if (answer instanceof Promise) void answer.then(judge, () => {})
    else judge(answer as TurnVerdict)
  }

  #transacted(by: Operation): void {
    const [[row], fence] = by.args as [StepCheckpoint[], LeaseFence?]
    const held = this.#held
    if (!row || !fence || !held) return
    if (held.lockedBy !== fence.owner || held.turns !== fence.turn) {
      this.#fail('fence', `${row.runId}: the transaction of ${fence.owner} committed late`)
    }
  }

  /** Nobody waits long after news. */
  #claimed(before: WorkflowRun): void {
    const { time, passive, refusing } = this.#options
    const { id, status, wakeRequestedAt } = before
    if (status !== 'suspended' || refusing) return
    const stampedAt = this.#stampedAt.get(id)
    if (passive && stampedAt !== undefined && time.now - stampedAt > PATIENCE_MS) {
      this.#fail('latestamp', `${id} was stamped ${Math.round(time.now - stampedAt)} ms ago`)
    }
    for (const [seq, at] of [...(this.#news.get(id) ?? [])]) {
      // What a fan that is decided still gets wakes the run, and is not read.
      const group = this.#options.shadow.row(id, seq)?.parallelGroup
      const isTold = wakeRequestedAt !== undefined || time.now - at <= PATIENCE_MS
      if (isTold && isFailFastGroup(group)) this.#news.get(id)!.delete(seq)
    }
    if (wakeRequestedAt !== undefined) return
    const { waitSeqs } = before
    for (const [seq, at] of this.#news.get(id) ?? []) {
      // A fan is woken once a wave.
      if (waitSeqs && seq >= waitSeqs.from && seq <= waitSeqs.to) continue
      if (time.now - at <= PATIENCE_MS) continue
      const age = Math.round(time.now - at)
      this.#fail('latenews', `${id}#${seq} was settled ${age} ms ago and nobody woke the run`)
    }
  }

  /** A child of a cancelled run does not go on for long. */
  #orphaned({ id, cancelRequestedAt }: WorkflowRun): void {
    const parentId = parentRunIdOf(id) ?? /^(.*)\.x\d+(?:~\d+)?$/.exec(id)?.[1]
    const parent = parentId === undefined ? undefined : this.#options.shadow.run(parentId)
    if (parent?.status !== 'cancelled' || cancelRequestedAt !== undefined) return
    const endedAt = this.#endedAt.get(parent.id) ?? 0
    // An operator wanted it to.
    if (this.#lastReopening(id) > endedAt) return
    const ago = this.#options.time.now - endedAt
    if (ago > ORPHAN_MS)
      this.#fail('orphan', `${id} goes on ${Math.round(ago)} ms after ${parent.id}`)
  }

  /** When an operator last brought back this run, or one that it goes on for under a later link. */
  #lastReopening(id: string): number {
    const { origin, link } = linkOf(id)
    const earlier = Array.from({ length: link + 1 }, (_, n) =>
      n === 0 ? origin : `${origin}~${n}`
    )
    return Math.max(...earlier.map((each) => this.#reopenedAt.get(each) ?? 0))
  }

  #read([runId, seqs, from]: [string, number[], number]): void {
    const news = this.#news.get(runId)
    for (const seq of [...(news?.keys() ?? [])]) {
      if (seqs.includes(seq) || seq >= from) news!.delete(seq)
    }
  }

  #fail(kind: string, text: string): void {
    this.#options.fail(kind, text)
  }
}

/** A child's row names the run that its chain went on as; an open breakpoint, its label. */
const isSamePosition = (a: StepCheckpoint, b: StepCheckpoint): boolean =>
  a.kind === b.kind &&
  (a.name === b.name ||
    (a.name.startsWith('signal:child:') && isLater(b.name, a.name)) ||
    (a.name.startsWith('breakpoint:') && b.name === `signal:bp:${a.runId}:${a.seq}`))

const isLater = (name: string, than: string): boolean =>
  name.replace(/~\d+$/, '') === than.replace(/~\d+$/, '')

const EXPECTED_ERROR = new RegExp(
  [
    '^(local|transaction|task|undo|[sf]\\d+) \\d+$',
    '^operation \\S+#\\d+$',
    '^"bad" on entity "ent:k\\d" failed: operation \\S+$',
    '^task "k\\d+" failed: K\\S+ \\d+\\.\\d+$',
    '^the search attributes of workflow "\\S+" is invalid: c: is refused$',
    '^child "\\S+" failed: ',
    '^ctx.all: \\d+ of \\d+ child\\(ren\\) failed: ',
    '^no signal "(tok\\d|event:ev\\d|update:\\S+:up\\d|wh:\\S+:\\d+)" within \\d+ms$',
    '^the broker did not answer$',
    '^step "[sf]\\d+" was dispatched \\d+ times without an answer$',
    '^step r\\S+: no result or heartbeat within \\d+ms$',
    '^step "l\\d+" took longer than \\d+ms$',
    '^All promises were rejected$',
    '^cancelled$',
    '^the run was cancelled before it ended$',
    '^crashed \\d+ times without progress',
    '^run \\S+, position', // reported as nondeterminism
  ].join('|')
)

/** Operations that settle rows from outside a turn. */
const OUTSIDE = new Set(['settleCheckpointsIfPending', 'deliverSignal', 'pairSignal'])

const outcome = ({ status, attempts, output, error }: StepCheckpoint) => [
  status,
  attempts,
  output,
  error,
]

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function describe(run: WorkflowRun): string {
  const parts: string[] = [run.status]
  if (run.lockedBy) parts.push(`held by ${run.lockedBy}`)
  parts.push(`turn ${run.turns}`)
  if (run.wakeAt !== undefined) parts.push(`wake ${run.wakeAt % 1_000_000}`)
  if (run.wakeRequestedAt !== undefined) parts.push('requested')
  if (run.cancelRequestedAt !== undefined) parts.push('cancel requested')
  if (run.error) parts.push(`error ${run.error.message}`)
  return parts.join(', ')
}

function describeRow(row: StepCheckpoint | undefined): string {
  if (!row) return '–'
  const parts = [`${row.name} ${row.status} attempt ${row.attempts}`]
  if (row.order !== undefined) parts.push(`order ${row.order}`)
  if (row.output !== undefined) parts.push(JSON.stringify(row.output))
  if (row.wakeAt !== undefined) parts.push(`wake ${row.wakeAt % 1_000_000}`)
  if (row.error) parts.push(`error ${row.error.message}${row.error.reset ? ' (reset)' : ''}`)
  return parts.join(' ')
}

/** A child's failure is its recorded completion. */
const isFailedChild = ({ name, output }: StepCheckpoint): boolean =>
  name.startsWith('signal:child:') && (output as { ok?: boolean } | undefined)?.ok === false
