/*
 * Statements on messages: decisions, step events, requests and run hints for anybody who consumes their
 * kind, replies and tenant events for one recipient.
 */
import type { Binding } from '../../sql/dialect.ts'
import type { Row, Session, Sql } from '../../sql/session.ts'
import { TRANSPORT_TABLES as T } from './tables.ts'
import type { Held } from './claims.ts'

export type MessageKind =
  'decision' | 'stepEvent' | 'startRun' | 'runRequest' | 'runReply' | 'tenantEvent' | 'run'

export interface NewMessage {
  id: string
  /** Of a run hint: its scope. */
  namespace: string
  kind: MessageKind
  recipient?: string
  /** JSON text. */
  payload: string
  priority?: number
  nowMs: number
}

const COLUMNS = 'id, namespace, kind, recipient, payload, priority, created_at'

/** Inserts a message; one with this id that is there already stays as it is. */
export async function insertMessage(sql: Sql, message: NewMessage): Promise<void> {
  const insert = sql.dialect.name === 'mysql' ? 'INSERT IGNORE INTO' : 'INSERT INTO'
  const conflict = sql.dialect.name === 'mysql' ? '' : 'ON CONFLICT (id) DO NOTHING'
  await sql.change(
    `${insert} ${T.messages} (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ${conflict}`,
    [
      message.id,
      message.namespace,
      message.kind,
      message.recipient ?? null,
      message.payload,
      Math.round(message.priority ?? 0),
      message.nowMs,
    ]
  )
}

/** One list of messages. */
export interface MessageList {
  namespace: string
  kind: MessageKind
  recipient?: string
}

export interface MessageClaim {
  token: string
  nowMs: number
  limit: number
}

export interface ClaimedMessage extends Held {
  list: MessageList
  payload: string
  reclaims: number
}

const ORDER = 'ORDER BY priority DESC, created_at'
const CLAIMED = `${COLUMNS}, reclaims`

/** Takes unclaimed messages of these lists, most urgent and oldest first. */
export async function claimMessages(
  session: Session,
  { token, nowMs, limit }: MessageClaim,
  lists: MessageList[]
): Promise<ClaimedMessage[]> {
  if (lists.length === 0 || limit <= 0) return []
  const { dialect } = session
  const parts = lists.map(
    ({ recipient }) => `SELECT * FROM (SELECT id, priority, created_at FROM ${T.messages}
      WHERE namespace = ? AND kind = ? AND recipient ${recipient === undefined ? 'IS NULL' : '= ?'}
        AND claimed_at IS NULL
      ${ORDER} LIMIT ? ${dialect.name === 'postgres' ? dialect.skipLocked : ''}) l`
  )
  const next = `SELECT id FROM (${parts.join(' UNION ALL ')}) c ${ORDER} LIMIT ?`
  const bindings = lists.flatMap(({ namespace, kind, recipient }): Binding[] => [
    namespace,
    kind,
    ...(recipient === undefined ? [] : [recipient]),
    limit,
  ])
  const rows = dialect.returns
    ? await session.run(
        `UPDATE ${T.messages} SET claimed_by = ?, claimed_at = ? WHERE id IN (${next}) RETURNING ${CLAIMED}`,
        [token, nowMs, ...bindings, limit]
      )
    : await claimOnMysql(session, { token, nowMs, limit }, next, [...bindings, limit])
  return rows
    .sort(
      (a, b) =>
        Number(b.priority) - Number(a.priority) || Number(a.created_at) - Number(b.created_at)
    )
    .map((row) => ({
      id: String(row.id),
      token,
      list: lists.find((list) => isOn(list, row))!,
      payload: String(row.payload),
      reclaims: Number(row.reclaims),
    }))
}

const isOn = ({ namespace, kind, recipient }: MessageList, row: Row): boolean =>
  row.namespace === namespace && row.kind === kind && (row.recipient ?? undefined) === recipient

async function claimOnMysql(
  session: Session,
  { token, nowMs }: MessageClaim,
  next: string,
  bindings: Binding[]
): Promise<Row[]> {
  const found = await session.run(next, bindings)
  if (found.length === 0) return []
  const ids = session.dialect.list(found.map((row) => String(row.id)))
  await session.change(
    `UPDATE ${T.messages} SET claimed_by = ?, claimed_at = ? WHERE id IN (?) AND claimed_at IS NULL`,
    [token, nowMs, ids]
  )
  return session.run(`SELECT ${CLAIMED} FROM ${T.messages} WHERE id IN (?) AND claimed_by = ?`, [
    ids,
    token,
  ])
}

/** Deletes a message that was handled, while the claim on it stands. */
export async function deleteMessage(session: Session, { id, token }: Held): Promise<void> {
  await session.change(`DELETE FROM ${T.messages} WHERE id = ? AND claimed_by = ?`, [id, token])
}

/** Deletes what was addressed to somebody who is gone: `recipients` are those of the namespace who are not. */
export async function dropUnreachable(
  session: Session,
  namespace: string,
  beforeMs: number,
  recipients: string[]
): Promise<void> {
  const { dialect } = session
  await session.change(
    `DELETE FROM ${T.messages} WHERE namespace = ? AND recipient IS NOT NULL AND created_at < ?
     AND ${dialect.isNotIn('recipient', 'text')}`,
    [namespace, beforeMs, dialect.list(recipients)]
  )
}
