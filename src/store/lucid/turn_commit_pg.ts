/*
 * A turn's commit as one Postgres statement. Its first CTE locks the run row and judges the newest version
 * of it; every write selects from that one. All parts of a statement see one snapshot, taken before the
 * lock: what a write must be certain of stands in its own ON CONFLICT or WHERE, which read the newest row,
 * and where that is not possible (an absent settled row, an empty buffer) the statement rolls itself back
 * when the run row changed in between, and is sent again.
 */
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { ChildState, SignalWait, TurnCommit, TurnVerdict } from '../ports/turn_commits.ts'
import { ATTRIBUTE_COLUMNS, ATTRIBUTE_TYPES, attributeRows, reindexingCtes } from './attributes.ts'
import { assigned, IS_LIVE, IS_SETTLED, REPLACED_COLUMNS } from './checkpoints.ts'
import { type Binding, type Fields, mustBeFresh, postgres } from '../../sql/dialect.ts'
import {
  CHECKPOINT_COLUMNS,
  CHECKPOINT_TYPES,
  checkpointColumns,
  type Columns,
  compact,
  listed,
  RUN_COLUMNS,
  RUN_TYPES,
  runColumns,
  WAITER_COLUMNS,
  WAITER_TYPES,
  waiterColumns,
} from './rows.ts'
import { freesSlot, patchColumns, TAGS_WITHOUT_MARKERS } from './runs.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Row, Session, Sql } from '../../sql/session.ts'
import { readPayload, replacingWaiter } from './signals.ts'
import { applyExtras, hasExtras } from './turn_extras.ts'
import { commitSteps, type CommitStep, distinctWaits } from './turn_commit_steps.ts'
import { childStates, completedBy, rowsAt, settlePatch, verdict } from './turn_verdict.ts'

export async function commitOnPostgres(session: Session, commit: TurnCommit): Promise<TurnVerdict> {
  const steps = commitSteps(commit)
  if (steps.length === 1 && !hasExtras(commit)) return commitStep(session, steps[0])
  return session.atomically(async (sql) => {
    const stored: StepCheckpoint[] = []
    let children: ChildState[] | undefined
    let last: TurnVerdict | undefined
    for (const step of steps) {
      last = await commitStep(sql, step)
      if (!last.applied) return last
      stored.push(...last.stored)
      children ??= last.children
    }
    await applyExtras(sql, commit, stored)
    return { ...last!, stored, ...(children ? { children } : {}) }
  })
}

async function commitStep(sql: Sql, step: CommitStep): Promise<TurnVerdict> {
  const statement = new CommitStatement(step)
  const [row] = await sql.run(statement.text(), statement.values)
  if (!row?.held) return verdict(row, false, [])
  return statement.outcome(sql, row)
}

const REPLACE_WAITER = replacingWaiter(postgres)
const OWN_COLUMNS = CHECKPOINT_COLUMNS.filter((column) => column !== 'run_id')
const INSERT = `INSERT INTO ${T.checkpoints} AS c (${listed(['run_id', ...OWN_COLUMNS])})`
const UNLESS_SETTLED = `ON CONFLICT (run_id, seq) DO UPDATE
  SET ${assigned(REPLACED_COLUMNS, 'excluded')} WHERE NOT c.${IS_SETTLED}`

/** Text, parameters and answer of the statement for one step; the text depends on its shape only. */
class CommitStatement {
  readonly values: Binding[] = []
  readonly #step: CommitStep
  readonly #waits: (SignalWait & { look: boolean })[]
  readonly #ctes: string[] = []
  #settled: Columns = {}

  constructor(step: CommitStep) {
    this.#step = step
    this.#waits = distinctWaits(step)
  }

  text(): string {
    const { runs, children, stamps, expiries, settle } = this.#step
    const run = this.#lock()
    const answers = ['run.held', 'run.status', 'run.wake_requested_at', 'run.cancel_requested_at']
    answers.push('run.awaited')
    if (this.#waits.length > 0) this.#take(run)
    if (expiries?.length) this.#lapse(run)
    if (this.#rows().length > 0) {
      this.#write(run)
      answers.push(`(SELECT string_agg(seq::text, ',') FROM written) AS written`)
    }
    if (this.#waits.length > 0) answers.push(...waitAnswers(run))
    else if (settle?.rekey) answers.push(`${mustBeFresh(unchanged(run))} AS fresh`)
    if (runs?.length) this.#insertRuns('born', runs, UNLESS_THERE)
    if (children?.length) {
      this.#insertRuns('begotten', children, MARK_AWAITED)
      answers.push(CHILD_STATES)
    }
    if (stamps?.length) this.#stamp(run)
    if (settle) this.#settle()
    return `WITH ${this.#ctes.join(',\n')} SELECT ${answers.join(', ')} FROM run`
  }

  /** What the statement did, and what stands where something else was in the way. */
  async outcome(sql: Sql, row: Row): Promise<TurnVerdict> {
    const { runId, rows, expiries } = this.#step
    const written = numbers(row.written)
    const open = numbers(row.open)
    const taken = new Map(
      (JSON.parse(String(row.taken ?? '[]')) as TakenRow[]).map((t) => [t[0], t])
    )
    const stored: StepCheckpoint[] = []
    const lost = new Set<number>()
    for (const { row: own } of [...(rows ?? []), ...(expiries ?? [])]) {
      if (!written.has(own.seq)) lost.add(own.seq)
    }
    for (const wait of this.#waits) {
      const took = taken.get(wait.row.seq)
      if (took) stored.push(completedBy(wait, readPayload(took[2], took[1])))
      else if (!wait.look && !open.has(wait.row.seq)) lost.add(wait.row.seq)
    }
    if (lost.size > 0) stored.push(...(await rowsAt(sql, runId, lost)))
    const woken = this.#waits.some((wait) => wait.look && taken.has(wait.row.seq))
    const children = this.#step.children && childStates(row.begotten)
    const after = { ...row, ...this.#settled, ...(woken ? { wake_requested_at: 0 } : {}) }
    return { ...verdict(after, true, stored), ...(children ? { children } : {}) }
  }

  #add(value: Binding): string {
    this.values.push(value)
    return `$${this.values.length}`
  }

  /** A JSON array as a row source. */
  #source(alias: string, fields: Fields, rows: readonly object[]): string {
    const place = this.#add(JSON.stringify(rows))
    return postgres.jsonRows(alias, fields).replace('?', () => place)
  }

  #lock(): string {
    const { runId, owner, turn, yieldsToCancel } = this.#step
    const run = this.#add(runId.toWellFormed())
    const held = [
      `locked_by = ${this.#add(owner.toWellFormed())}`,
      `turns = ${this.#add(turn)}`,
      IS_LIVE,
      ...(yieldsToCancel ? ['cancel_requested_at IS NULL'] : []),
    ]
    this.#ctes.push(`run AS (
      SELECT id, status, wake_requested_at, cancel_requested_at, awaited, ctid AS place,
        coalesce(${held.join(' AND ')}, false) AS held
      FROM ${T.runs} WHERE id = ${run} FOR NO KEY UPDATE)`)
    return run
  }

  /** Takes a buffered payload for each wait that has one; registers the others, except looks. */
  #take(run: string): void {
    const source = this.#source(
      'w',
      { ...WAITER_TYPES, look: 'int' },
      this.#waits.map(({ waiter, look }) => ({
        ...compact(waiterColumns(waiter)),
        look: look ? 1 : 0,
      }))
    )
    this.#ctes.push(
      `waiting AS (
        SELECT w.token, w.seq, w.parallel_group, w.created_at, w.look FROM run, ${source}
        WHERE run.held
          AND NOT EXISTS (SELECT 1 FROM ${T.checkpoints} c
            WHERE c.run_id = ${run} AND c.seq = w.seq AND c.${IS_SETTLED})
          AND (w.look = 0 OR EXISTS (SELECT 1 FROM ${T.signalWaiters} x
            WHERE x.token = w.token AND x.run_id = ${run} AND x.seq = w.seq)))`,
      `oldest AS (
        SELECT w.token, w.seq, b.id FROM waiting w CROSS JOIN LATERAL (
          SELECT b.id FROM ${T.bufferedSignals} b WHERE b.token = w.token
          ORDER BY b.id LIMIT 1 FOR UPDATE SKIP LOCKED) b)`,
      `taken AS (
        DELETE FROM ${T.bufferedSignals} b USING oldest WHERE b.id = oldest.id
        RETURNING oldest.token, oldest.seq, b.id, b.payload)`,
      `cleared AS (
        DELETE FROM ${T.signalWaiters} x USING taken
        WHERE x.token = taken.token AND x.run_id = ${run} AND x.seq = taken.seq)`,
      `registered AS (
        INSERT INTO ${T.signalWaiters} (${listed(WAITER_COLUMNS)})
        SELECT w.token, ${run}, w.seq, w.parallel_group, w.created_at FROM waiting w
        WHERE w.look = 0 AND w.token NOT IN (SELECT token FROM taken) ORDER BY w.token
        ${REPLACE_WAITER})`
    )
  }

  #lapse(run: string): void {
    const source = this.#source(
      'e',
      { token: 'text', seq: 'int' },
      this.#step.expiries!.map(({ waiter }) => ({
        token: waiter.token.toWellFormed(),
        seq: waiter.seq,
      }))
    )
    this.#ctes.push(`lapsed AS (
      DELETE FROM ${T.signalWaiters} x USING run, ${source}
      WHERE run.held AND x.token = e.token AND x.run_id = ${run} AND x.seq = e.seq)`)
  }

  /** Every checkpoint of the commit; those of waits with the token that decides whether they count. */
  #rows(): Columns[] {
    const { rows, expiries } = this.#step
    return [
      ...[...(rows ?? []), ...(expiries ?? [])].map(({ row }) => compact(checkpointColumns(row))),
      ...this.#waits.map(({ row, waiter }) => ({
        ...compact(checkpointColumns(row)),
        token: waiter.token.toWellFormed(),
      })),
    ]
  }

  #write(run: string): void {
    this.#ctes.push(`written AS (
      ${INSERT}
      ${this.#entries(run)}
      ${UNLESS_SETTLED}${this.#retries()} RETURNING c.seq)`)
  }

  #entries(run: string): string {
    const rows = this.#rows()
    if (this.#waits.length > 0) return this.#entriesOrTaken(run, rows)
    if (rows.length === 1) {
      // Most commits: a third cheaper than a row source of one.
      const values = OWN_COLUMNS.map((column) => this.#add(rows[0][column] ?? null))
      return `SELECT ${[run, ...values].join(', ')} FROM run WHERE run.held`
    }
    const source = this.#source('r', CHECKPOINT_TYPES, rows)
    return `SELECT ${run}, ${listed(OWN_COLUMNS, 'r')} FROM run, ${source} WHERE run.held ORDER BY r.seq`
  }

  #entriesOrTaken(run: string, rows: Columns[]): string {
    const source = this.#source('r', { ...CHECKPOINT_TYPES, token: 'text' }, rows)
    const columns = OWN_COLUMNS.map((column) =>
      column === 'output'
        ? 'CASE WHEN r.token IS NULL THEN r.output ELSE taken.payload END'
        : `r.${column}`
    )
    // A wait's row goes before a row written for the same position: that one only says what it waits for.
    return `SELECT DISTINCT ON (r.seq) ${[run, ...columns].join(', ')}
      FROM run CROSS JOIN ${source} LEFT JOIN taken ON taken.token = r.token AND taken.seq = r.seq
      WHERE run.held AND (r.token IS NULL OR taken.token IS NOT NULL)
      ORDER BY r.seq, r.token IS NULL`
  }

  /** Whether a row retries the attempt that stands depends on the row, which excluded cannot tell. */
  #retries(): string {
    const retried = (this.#step.rows ?? []).filter((write) => write.retryOf !== undefined)
    if (retried.length === 0) return ''
    const attempts = Object.fromEntries(retried.map(({ row, retryOf }) => [row.seq, retryOf]))
    const map = this.#add(JSON.stringify(attempts))
    return ` OR (c.status = 'failed' AND c.attempts = (${map}::json ->> c.seq::text)::int)`
  }

  #insertRuns(name: string, runs: WorkflowRun[], onConflict: string): void {
    const columns = listed(RUN_COLUMNS)
    const source = this.#source(
      'n',
      RUN_TYPES,
      runs.map((run) => compact(runColumns(run)))
    )
    this.#ctes.push(`${name} AS (
      INSERT INTO ${T.runs} AS own (${columns})
      SELECT ${listed(RUN_COLUMNS, 'n')} FROM run, ${source} WHERE run.held ORDER BY n.id
      ON CONFLICT (id) ${onConflict})`)
    const attributes = runs.flatMap(attributeRows)
    if (attributes.length === 0) return
    this.#ctes.push(`${name}_indexed AS (
      INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS})
      SELECT a.run_id, a."key", a.str_value, a.num_value, a.created_at
      FROM ${name} JOIN ${this.#source('a', ATTRIBUTE_TYPES, attributes)} ON a.run_id = ${name}.id
      WHERE NOT ${name}.existed ON CONFLICT DO NOTHING)`)
  }

  #stamp(run: string): void {
    const stamps = this.#step.stamps!
    const places = stamps.map(({ seq, order }) => ({ seq, place: order }))
    const source = this.#source('s', { seq: 'int', place: 'int' }, places)
    // The list keeps it to the rows named, however long the timeline.
    const list = this.#add(stamps.map(({ seq }) => seq))
    this.#ctes.push(`stamped AS (
      UPDATE ${T.checkpoints} c SET delivery_order = s.place FROM run, ${source}
      WHERE run.held AND c.run_id = ${run} AND c.seq = ANY(${list}::int[]) AND c.seq = s.seq
        AND c.delivery_order IS NULL)`)
  }

  #rekey({ from, to }: { from: string; to: string }): void {
    const old = this.#add(from.toWellFormed())
    const fresh = this.#add(to.toWellFormed())
    this.#ctes.push(
      `moved AS (
        DELETE FROM ${T.signalWaiters} w USING run WHERE run.held AND w.token = ${old}
        RETURNING w.run_id, w.seq, w.parallel_group, w.created_at)`,
      `rekeyed AS (
        INSERT INTO ${T.signalWaiters} (${listed(WAITER_COLUMNS)})
        SELECT ${fresh}, run_id, seq, parallel_group, created_at FROM moved ${REPLACE_WAITER})`
    )
  }

  #settle(): void {
    const step = this.#step
    const patch = settlePatch(step)
    const columns = patchColumns(patch)
    this.#settled = columns
    const sets = Object.entries(columns).map(([column, value]) => `${column} = ${this.#add(value)}`)
    sets.push('locked_by = NULL', 'locked_until = NULL')
    if (freesSlot(patch)) sets.push(`tags = ${TAGS_WITHOUT_MARKERS}`)
    if (this.#waits.some((wait) => wait.look)) {
      const hit =
        'EXISTS (SELECT 1 FROM taken JOIN waiting USING (token, seq) WHERE waiting.look = 1)'
      sets.push(
        `wake_requested_at = CASE WHEN ${hit} THEN ${this.#add(step.nowMs)}::bigint
          ELSE r.wake_requested_at END`
      )
    }
    if (step.settle!.rekey) this.#rekey(step.settle!.rekey)
    this.#ctes.push(`ended AS (
      UPDATE ${T.runs} r SET ${sets.join(', ')} FROM run WHERE r.id = run.id AND run.held
      RETURNING r.id, r.created_at)`)
    this.#ctes.push(...reindexingCtes('ended', step.runId, patch, (json) => this.#add(json)))
  }
}

const UNLESS_THERE = 'DO NOTHING RETURNING own.id, false AS existed'

/** Under the child's own row lock, so that its settling write and this mark see each other. */
const MARK_AWAITED = `DO UPDATE SET awaited = 1
  RETURNING own.id, own.status, own.output, own.error, own.xmax::text <> '0' AS existed`

const CHILD_STATES = `(SELECT json_agg(json_build_array(id, status, output, error))::text
  FROM begotten WHERE existed) AS begotten`

type TakenRow = [seq: number, id: string, payload: string | null]

/** The run row is as the snapshot shows it: so are the waiters and rows of whoever locked it before. */
const unchanged = (run: string): string =>
  `(NOT run.held OR run.place = (SELECT ctid FROM ${T.runs} WHERE id = ${run}))`

const waitAnswers = (run: string): string[] => [
  `(SELECT string_agg(seq::text, ',') FROM waiting WHERE look = 0) AS open`,
  `(SELECT json_agg(json_build_array(seq, id::text, payload))::text FROM taken) AS taken`,
  `${mustBeFresh(`${unchanged(run)}
      AND NOT EXISTS (SELECT 1 FROM taken WHERE seq NOT IN (SELECT seq FROM written))`)} AS fresh`,
]

const numbers = (value: unknown): Set<number> =>
  new Set(value ? String(value).split(',').map(Number) : [])
