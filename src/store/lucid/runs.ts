/*
 * Run rows: insert, patch, conditional patch, read, delete. Every condition is in the write itself
 * (invariant 4). Search attributes change with the run they belong to, in the same statement on Postgres
 * and the same transaction elsewhere. A terminal status gives back the singleton slot in the same write.
 */
import { isTerminalStatus, type RunStatus, type WorkflowRun } from '../../types/run.ts'
import { DuplicateRunError } from '../../errors.ts'
import {
  SINGLETON_ADMITTED,
  SINGLETON_TRACKED,
  withoutSingletonMarkers,
} from '../ports/singleton_rules.ts'
import {
  ATTRIBUTE_COLUMNS,
  ATTRIBUTE_TYPES,
  type AttributeRow,
  attributeRows,
  reindexes,
  reindexing,
  reindexingCtes,
} from './attributes.ts'
import type { Binding } from '../../sql/dialect.ts'
import { inNamespace } from './due_runs.ts'
import { type Columns, listed, readRun, RUN_COLUMNS, runColumns, runPatchColumns } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Session, Sql } from '../../sql/session.ts'
import { insertNew, takeRows } from './writes.ts'

const INSERT = `INSERT INTO ${T.runs} (${listed(RUN_COLUMNS)})
  VALUES (${RUN_COLUMNS.map(() => '?').join(', ')})`

export const SELECT_RUN = `SELECT ${listed(RUN_COLUMNS)} FROM ${T.runs} WHERE id = ?`

/** Tags without the singleton markers, as an expression over stored JSON text. */
export const TAGS_WITHOUT_MARKERS = [SINGLETON_ADMITTED, SINGLETON_TRACKED].reduce(
  (tags, marker) =>
    // The quotes inside other tags are escaped, so these texts are elements and nothing else.
    `replace(replace(replace(${tags}, '"${marker}",', ''), ',"${marker}"', ''), '["${marker}"]', '[]')`,
  'tags'
)

export async function createRun(session: Session, run: WorkflowRun): Promise<void> {
  const columns = runColumns(run)
  const values = RUN_COLUMNS.map((column) => columns[column])
  const attributes = attributeRows(run)
  const inserted =
    attributes.length === 0
      ? await insertNew(session, INSERT, values)
      : await insertWithAttributes(session, values, attributes)
  if (!inserted) throw new DuplicateRunError(run.id)
}

async function insertWithAttributes(
  session: Session,
  values: Binding[],
  attributes: AttributeRow[]
): Promise<boolean> {
  const source = session.dialect.jsonRows('a', ATTRIBUTE_TYPES)
  const into = `INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS})`
  const json = JSON.stringify(attributes)
  if (session.dialect.name === 'postgres') {
    const born = await session.run(
      `WITH born AS (${INSERT} ON CONFLICT (id) DO NOTHING RETURNING id), indexed AS (
         ${into} SELECT ${listed(Object.keys(ATTRIBUTE_TYPES), 'a').replace('a.key', 'a."key"')}
         FROM born JOIN ${source} ON a.run_id = born.id
       ) SELECT id FROM born`,
      [...values, json]
    )
    return born.length > 0
  }
  return session.atomically(async (sql) => {
    const inserted = await insertNew(sql, INSERT, values)
    if (inserted) {
      await sql.change(`${into} SELECT ${ATTRIBUTE_COLUMNS} FROM ${source}`, [json])
    }
    return inserted
  })
}

export async function updateRun(
  session: Session,
  runId: string,
  patch: Partial<WorkflowRun>
): Promise<void> {
  const columns = patchColumns(patch)
  if (Object.keys(columns).length > 0) await applyPatch(session, runId, patch, columns)
}

export async function updateRunIf(
  session: Session,
  runId: string,
  expected: RunStatus[],
  patch: Partial<WorkflowRun>
): Promise<boolean> {
  if (expected.length === 0) return false
  const columns = patchColumns(patch)
  if (Object.keys(columns).length > 0) {
    return applyPatch(session, runId, patch, columns, expected)
  }
  const { dialect } = session
  const rows = await session.run(
    `SELECT id FROM ${T.runs} WHERE id = ? AND ${dialect.isIn('status', 'text')}`,
    [runId.toWellFormed(), dialect.list(expected)]
  )
  return rows.length > 0
}

/** The columns a patch writes; a terminal status takes the slot markers from its tags. */
export function patchColumns(patch: Partial<WorkflowRun>): Columns {
  const columns = runPatchColumns(patch)
  if (patch.status !== undefined && isTerminalStatus(patch.status) && patch.tags !== undefined) {
    columns.tags = JSON.stringify(withoutSingletonMarkers(patch.tags))
  }
  return columns
}

/** Whether a patch gives back the singleton slot that the stored tags may hold. */
export const freesSlot = (patch: Partial<WorkflowRun>): boolean =>
  patch.status !== undefined && isTerminalStatus(patch.status) && !('tags' in patch)

/** `a = ?, b = ?` for a patch. */
export function assignments(columns: Columns, patch: Partial<WorkflowRun>): string {
  const sets = Object.keys(columns).map((column) => `${column} = ?`)
  return (freesSlot(patch) ? [...sets, `tags = ${TAGS_WITHOUT_MARKERS}`] : sets).join(', ')
}

/** Whether the patch landed. */
async function applyPatch(
  session: Session,
  runId: string,
  patch: Partial<WorkflowRun>,
  columns: Columns,
  expected?: RunStatus[]
): Promise<boolean> {
  const { dialect } = session
  const id = runId.toWellFormed()
  const condition = expected ? ` AND ${dialect.isIn('status', 'text')}` : ''
  const update = `UPDATE ${T.runs} SET ${assignments(columns, patch)} WHERE id = ?${condition}`
  const bindings: Binding[] = [...Object.values(columns), id]
  if (expected) bindings.push(dialect.list(expected))
  if (!reindexes(patch)) {
    const { rows } = await session.change(update, bindings)
    return rows > 0
  }
  if (dialect.name === 'postgres') {
    const ctes = reindexingCtes('changed', id, patch, (json) => {
      bindings.push(json)
      return '?'
    })
    const changed = await session.run(
      `WITH changed AS (${update} RETURNING id, created_at), ${ctes.join(', ')} SELECT id FROM changed`,
      bindings
    )
    return changed.length > 0
  }
  return session.atomically(async (sql) => {
    const { rows } = await sql.change(update, bindings)
    if (rows > 0) await reindex(sql, id, patch)
    return rows > 0
  })
}

/** Changes the index rows of a run, inside a transaction and after the run itself. */
export async function reindex(sql: Sql, runId: string, patch: Partial<WorkflowRun>): Promise<void> {
  for (const { text, bindings } of reindexing(sql.dialect, runId, patch)) {
    await sql.change(text, bindings)
  }
}

export async function getRun(
  sql: Sql,
  runId: string,
  namespace?: string
): Promise<WorkflowRun | null> {
  const scope = inNamespace(namespace)
  const [row] = await sql.run(`${SELECT_RUN}${scope.text}`, [
    runId.toWellFormed(),
    ...scope.bindings,
  ])
  return row ? readRun(row) : null
}

const CHUNK = 500

export async function getRuns(
  session: Session,
  runIds: string[],
  namespace?: string
): Promise<WorkflowRun[]> {
  const scope = inNamespace(namespace)
  const ids = [...new Set(runIds.map((id) => id.toWellFormed()))].sort()
  const found: WorkflowRun[] = []
  for (let from = 0; from < ids.length; from += CHUNK) {
    const rows = await session.run(
      `SELECT ${listed(RUN_COLUMNS)} FROM ${T.runs}
       WHERE ${session.dialect.isIn('id', 'text')}${scope.text}`,
      [session.dialect.list(ids.slice(from, from + CHUNK)), ...scope.bindings]
    )
    found.push(...rows.map(readRun))
  }
  return found
}

/**
 * Removes runs with what belongs to them; with `statuses`, only those that have one of them. Answers which
 * runs went.
 */
export async function deleteRuns(
  session: Session,
  runIds: string[],
  statuses?: RunStatus[]
): Promise<string[]> {
  const { dialect } = session
  const ids = [...new Set(runIds.map((id) => id.toWellFormed()))].sort()
  const anyOf = (column: string) => dialect.isIn(column, 'text')
  const chosen = statuses ? `${anyOf('id')} AND ${anyOf('status')}` : anyOf('id')
  const removed: string[] = []
  for (let from = 0; from < ids.length; from += CHUNK) {
    const chunk = ids.slice(from, from + CHUNK)
    const places = [dialect.list(chunk), ...(statuses ? [dialect.list(statuses)] : [])]
    const gone = await session.atomically(async (sql) => {
      // The run first: whoever writes under its lock is done before, or finds it gone.
      const rows = await takeRows(sql, T.runs, 'id', ['id'], chosen, places)
      const went = rows.map((row) => String(row.id))
      // Without a condition, also what is left of a run that is long gone.
      const owners = dialect.list(statuses ? went : chunk)
      for (const table of [T.attributes, T.signalWaiters, T.checkpoints]) {
        await sql.change(`DELETE FROM ${table} WHERE ${anyOf('run_id')}`, [owners])
      }
      return went
    })
    removed.push(...gone)
  }
  return removed
}
