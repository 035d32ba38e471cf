/*
 * Run rows: insert, patch, conditional patch, read, delete. Every condition is in the write itself
 * (invariant 4). Search attributes change with the run they belong to, in the same statement on Postgres
 * and the same transaction elsewhere. A terminal status gives back the singleton slot in the same write.
 */
import { isTerminalStatus, type RunStatus, type WorkflowRun } from '../../types/run.ts'
import { attributeEntries } from '../ports/attribute_rules.ts'
import { DuplicateRunError } from '../../errors.ts'
import {
  SINGLETON_ADMITTED,
  SINGLETON_TRACKED,
  withoutSingletonMarkers,
} from '../ports/singleton_rules.ts'
import type { Binding, Fields } from './dialect.ts'
import { inNamespace } from './due_runs.ts'
import { type Columns, listed, readRun, RUN_COLUMNS, runColumns, runPatchColumns } from './rows.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Session, Sql } from './session.ts'
import { insertNew, takeRows } from './writes.ts'

export const ATTRIBUTE_COLUMNS = 'run_id, "key", str_value, num_value'
export const ATTRIBUTE_TYPES: Fields = {
  run_id: 'text',
  key: 'text',
  str_value: 'text',
  num_value: 'float8',
}

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

export interface AttributeRow {
  run_id: string
  key: string
  str_value?: string
  num_value?: number
}

/** The index rows of a run's attributes. */
export const attributeRows = (run: Pick<WorkflowRun, 'id' | 'searchAttributes'>): AttributeRow[] =>
  attributeEntries(run.searchAttributes).map(({ key, value }) => ({
    run_id: run.id.toWellFormed(),
    key: key.toWellFormed(),
    ...(typeof value === 'number' ? { num_value: value } : { str_value: value.toWellFormed() }),
  }))

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
      await sql.change(`${into} SELECT run_id, "key", str_value, num_value FROM ${source}`, [json])
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
  if (!('searchAttributes' in patch)) {
    const { rows } = await session.change(update, bindings)
    return rows > 0
  }
  const json = JSON.stringify(attributeRows({ id, searchAttributes: patch.searchAttributes }))
  if (dialect.name === 'postgres') {
    const changed = await session.run(
      `WITH changed AS (${update} RETURNING id), ${reindexing('changed', '?', '?')} SELECT id FROM changed`,
      [...bindings, json, json]
    )
    return changed.length > 0
  }
  return session.atomically(async (sql) => {
    const { rows } = await sql.change(update, bindings)
    if (rows > 0) await reindex(sql, id, json)
    return rows > 0
  })
}

/**
 * Postgres: CTEs that replace the index rows of the run which the CTE `changed` answers. Both places are
 * given the new rows as JSON.
 */
export const reindexing = (changed: string, place: string, again: string): string => `dropped AS (
    DELETE FROM ${T.attributes} x USING ${changed} WHERE x.run_id = ${changed}.id
      AND x."key" NOT IN (SELECT n."key" FROM json_to_recordset(${place}::json) AS n("key" text))
  ), indexed AS (
    INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS})
    SELECT ${changed}.id, n."key", n.str_value, n.num_value FROM ${changed},
      json_to_recordset(${again}::json) AS n("key" text, str_value text, num_value float8)
    ON CONFLICT (run_id, "key") DO UPDATE SET
      str_value = excluded.str_value, num_value = excluded.num_value
  )`

/** Replaces the index rows of a run, inside a transaction. */
export async function reindex(sql: Sql, runId: string, json: string): Promise<void> {
  await sql.change(`DELETE FROM ${T.attributes} WHERE run_id = ?`, [runId])
  await sql.change(
    `INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS})
     SELECT run_id, "key", str_value, num_value FROM ${sql.dialect.jsonRows('a', ATTRIBUTE_TYPES)}`,
    [json]
  )
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
