/*
 * What runs leave behind: a row for everything a run did in a transaction of its own, written with the
 * record of its step, and a row for every undo that ran.
 */
import type { Database } from '@adonisjs/lucid/database'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import type { WorkflowCtx } from '../../src/types/ctx.ts'

export const LEDGER = 'chaos_ledger'

/** `what` is a step for work done once, `undo …` for an undo, which may run again. */
export interface Line {
  runId: string
  what: string
}

export async function createLedger(db: Database): Promise<void> {
  await db.connection().schema.createTable(LEDGER, (table) => {
    table.increments('id')
    table.string('run_id', 255).notNullable()
    table.string('what', 255).notNullable()
  })
}

/** One transactional step: the row and its record are durable together. */
export function book(ctx: WorkflowCtx, what: string): Promise<null> {
  return ctx.transaction(what, async (tx) => {
    const trx = tx as TransactionClientContract
    await trx.table(LEDGER).insert({ run_id: ctx.runId, what })
    return null
  })
}

export async function noteUndo(db: Database, runId: string, what: string): Promise<void> {
  await db.table(LEDGER).insert({ run_id: runId, what: `undo ${what}` })
}

/** In the order in which the rows were inserted. */
export async function readLedger(db: Database): Promise<Line[]> {
  const rows = await db.from(LEDGER).orderBy('id')
  return rows.map((row): Line => ({ runId: row.run_id, what: row.what }))
}
