/*
 * What holds of claims on rows of any table: a claim is renewed, given back or found lapsed under its own
 * token, never under that of another one (invariant 4).
 */
import type { Row, Session } from '../../sql/session.ts'

/** What a claim took, and whether more was there for the taking. */
export interface ClaimedRows {
  rows: Row[]
  more: boolean
}

export interface Claim {
  namespace: string
  token: string
  nowMs: number
  /** At most so many rows. */
  limit: number
}

/** A claim's hold on one row. */
export interface Held {
  id: string
  token: string
}

const HELD = { id: 'text', token: 'text' } as const

/** Extends claims. Answers the ids of those that still stand. */
export async function renewClaims(
  session: Session,
  table: string,
  key: string,
  held: Held[],
  nowMs: number
): Promise<Set<string>> {
  const { dialect } = session
  const source = dialect.jsonRows('h', HELD)
  const on = `${table}.${key} = h.id AND ${table}.claimed_by = h.token`
  const json = JSON.stringify(held)
  if (dialect.returns) {
    const rows = await session.run(
      `UPDATE ${table} SET claimed_at = ? FROM ${source} WHERE ${on} RETURNING ${table}.${key} AS id`,
      [nowMs, json]
    )
    return new Set(rows.map((row) => String(row.id)))
  }
  await session.change(`UPDATE ${table} JOIN ${source} ON ${on} SET claimed_at = ?`, [json, nowMs])
  const rows = await session.run(
    `SELECT ${table}.${key} AS id FROM ${table} JOIN ${source} ON ${on}`,
    [json]
  )
  return new Set(rows.map((row) => String(row.id)))
}

/** Gives claims back, uncounted: others may take the rows at once. */
export async function releaseClaims(
  session: Session,
  table: string,
  key: string,
  held: Held[]
): Promise<void> {
  const source = session.dialect.jsonRows('h', HELD)
  const on = `${table}.${key} = h.id AND ${table}.claimed_by = h.token`
  const free = 'claimed_by = NULL, claimed_at = NULL'
  await session.change(
    session.dialect.name === 'mysql'
      ? `UPDATE ${table} JOIN ${source} ON ${on} SET ${free}`
      : `UPDATE ${table} SET ${free} FROM ${source} WHERE ${on}`,
    [JSON.stringify(held)]
  )
}

/**
 * Frees rows whose claim nobody renewed since `beforeMs`, and counts that where rows count it. A claim
 * renewed meanwhile stands: the condition is part of the write.
 */
export async function freeLapsed(
  session: Session,
  table: string,
  scope: { namespace: string; beforeMs: number; counted: boolean }
): Promise<number> {
  const count = scope.counted ? ', reclaims = reclaims + 1' : ''
  const { rows } = await session.change(
    `UPDATE ${table} SET claimed_by = NULL, claimed_at = NULL${count}
     WHERE namespace = ? AND claimed_at < ?`,
    [scope.namespace, scope.beforeMs]
  )
  return rows
}
