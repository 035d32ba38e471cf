/*
 * The index rows of search attributes. Each tells when its run began, so that the index of a value holds its
 * runs in the order of lists. They change with the run they belong to: in the same statement on Postgres, in
 * the same transaction elsewhere.
 */
import type { WorkflowRun } from '../../types/run.ts'
import { attributeEntries } from '../ports/attribute_rules.ts'
import type { Dialect, Fields } from '../../sql/dialect.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import type { Statement } from './scripts.ts'

const VALUES = 'run_id, "key", str_value, num_value'
export const ATTRIBUTE_COLUMNS = `${VALUES}, created_at`

const VALUE_TYPES: Fields = { run_id: 'text', key: 'text', str_value: 'text', num_value: 'float8' }
export const ATTRIBUTE_TYPES: Fields = { ...VALUE_TYPES, created_at: 'bigint' }

interface AttributeValue {
  run_id: string
  key: string
  str_value?: string
  num_value?: number
}

export interface AttributeRow extends AttributeValue {
  created_at: number
}

const valuesOf = (run: Pick<WorkflowRun, 'id' | 'searchAttributes'>): AttributeValue[] =>
  attributeEntries(run.searchAttributes).map(({ key, value }) => ({
    run_id: run.id.toWellFormed(),
    key: key.toWellFormed(),
    ...(typeof value === 'number' ? { num_value: value } : { str_value: value.toWellFormed() }),
  }))

/** The index rows of a new run. */
export const attributeRows = (run: WorkflowRun): AttributeRow[] =>
  valuesOf(run).map((row) => ({ ...row, created_at: run.createdAt.getTime() }))

/** What of a patch the index rows repeat. */
type Indexed = Pick<Partial<WorkflowRun>, 'searchAttributes' | 'createdAt'>

/** Whether a patch changes index rows. */
export const reindexes = (patch: Indexed): boolean =>
  'searchAttributes' in patch || patch.createdAt !== undefined

/** Changes the index rows of a run, inside a transaction and after the run itself. */
export function reindexing(dialect: Dialect, runId: string, patch: Indexed): Statement[] {
  const id = runId.toWellFormed()
  if (!('searchAttributes' in patch)) {
    if (patch.createdAt === undefined) return []
    return [
      {
        text: `UPDATE ${T.attributes} SET created_at = ? WHERE run_id = ?`,
        bindings: [patch.createdAt.getTime(), id],
      },
    ]
  }
  const rows = valuesOf({ id, searchAttributes: patch.searchAttributes })
  const dropping = { text: `DELETE FROM ${T.attributes} WHERE run_id = ?`, bindings: [id] }
  if (rows.length === 0) return [dropping]
  return [
    dropping,
    {
      text: `INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS})
        SELECT a.run_id, a."key", a.str_value, a.num_value, r.created_at
        FROM ${dialect.jsonRows('a', VALUE_TYPES)} JOIN ${T.runs} r ON r.id = a.run_id`,
      bindings: [JSON.stringify(rows)],
    },
  ]
}

/**
 * Postgres: CTEs that do the same for the run which the CTE `changed` answers with its id and created_at.
 * `place` gives a place for a text.
 */
export function reindexingCtes(
  changed: string,
  runId: string,
  patch: Indexed,
  place: (json: string) => string
): string[] {
  if (!('searchAttributes' in patch)) {
    if (patch.createdAt === undefined) return []
    return [
      `redated AS (UPDATE ${T.attributes} x SET created_at = ${changed}.created_at FROM ${changed}
        WHERE x.run_id = ${changed}.id)`,
    ]
  }
  const rows = JSON.stringify(valuesOf({ id: runId, searchAttributes: patch.searchAttributes }))
  return [
    `dropped AS (
      DELETE FROM ${T.attributes} x USING ${changed} WHERE x.run_id = ${changed}.id
        AND x."key" NOT IN (SELECT n."key" FROM json_to_recordset(${place(rows)}::json) AS n("key" text)))`,
    `indexed AS (
      INSERT INTO ${T.attributes} (${ATTRIBUTE_COLUMNS})
      SELECT ${changed}.id, n."key", n.str_value, n.num_value, ${changed}.created_at FROM ${changed},
        json_to_recordset(${place(rows)}::json) AS n("key" text, str_value text, num_value float8)
      ON CONFLICT (run_id, "key") DO UPDATE SET str_value = excluded.str_value,
        num_value = excluded.num_value, created_at = excluded.created_at)`,
  ]
}
