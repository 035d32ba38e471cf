/*
 * What the store sends, text and values, on one connection inside a transaction that is taken back: nothing
 * a case writes stays, and each case finds the data as they were filled in.
 */
import type { Database } from '@adonisjs/lucid/database'
import { clientOf, type KnexClient, onConnection } from '../../src/sql/connections.ts'
import { CONNECTION } from '../helpers/databases.ts'

export interface Sent {
  sql: string
  bindings: readonly unknown[]
  /** Whether its plan is kept, on servers that keep plans. */
  kept: boolean
}

interface QueryEvent {
  sql: string
  bindings?: readonly unknown[]
  options?: { name?: string }
}

/** The statements over durable tables that `work` sends, and what it answered. */
export async function capture<T>(
  db: Database,
  work: () => Promise<T>
): Promise<{ sent: Sent[]; answer: T }> {
  const sent: Sent[] = []
  await db.beginGlobalTransaction(CONNECTION)
  try {
    const client = db.getRawConnection(CONNECTION)!.connection!.client!
    const record = ({ sql, bindings = [], options }: QueryEvent) => {
      if (sql.includes('durable_') && /^\s*(SELECT|WITH|UPDATE|DELETE|INSERT)/.test(sql)) {
        sent.push({ sql, bindings, kept: options?.name !== undefined })
      }
    }
    client.on('query', record)
    try {
      const answer = await work()
      return {
        sent: sent.filter(({ sql }) =>
          /durable_(workflow|step|run|signal|buffered|transport)/.test(sql)
        ),
        answer,
      }
    } finally {
      client.removeListener('query', record)
    }
  } finally {
    await db.rollbackGlobalTransaction(CONNECTION)
  }
}

export type Send = (sql: string, bindings?: readonly unknown[]) => Promise<unknown>

/** Statements on one connection, in a transaction that is taken back. */
export async function takenBack<T>(
  db: Database,
  work: (send: Send, connection: object) => Promise<T>
): Promise<T> {
  const client: KnexClient = clientOf(db.connection(CONNECTION))
  return onConnection(client, async (connection) => {
    const send: Send = async (sql, bindings = []) => {
      const { response } = await client.query(connection, { method: 'raw', sql, bindings })
      return response
    }
    await send('BEGIN')
    try {
      return await work(send, connection)
    } finally {
      await send('ROLLBACK')
    }
  })
}
