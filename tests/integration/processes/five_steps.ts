/*
 * Workflows whose every effect leaves a trace: a line in a file where a step may run again, a row in a
 * table of the application where it may not.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import type { Database } from '@adonisjs/lucid/database'
import type { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'

export const LEDGER = 'process_ledger'
/** Steps that leave lines, in their order. */
export const LINES = ['take', 'price', 'send', 'note']
export const OUTPUT = ['take', 'price', 'charged', 'send', 'note']

export async function createLedger(db: Database): Promise<void> {
  await db.connection().schema.createTable(LEDGER, (table) => {
    table.string('run_id').notNullable().index()
  })
}

export function registerFiveSteps(engine: WorkflowEngine, write: (line: string) => void): void {
  const leave = (step: string, runId: string) => {
    write(`${runId} ${step}`)
    return step
  }
  for (const step of ['price', 'send']) {
    engine.handle(step, (input) => leave(step, (input as { runId: string }).runId))
  }
  engine.register('five steps', '1', async (ctx, { runId }: { runId: string }) => {
    const take = await ctx.localStep('take', () => leave('take', runId))
    const price = await ctx.step('price', { runId })
    const charged = await ctx.transaction('charge', async (tx) => {
      const client = tx as TransactionClientContract
      await client.insertQuery().table(LEDGER).insert({ run_id: runId })
      return 'charged'
    })
    const send = await ctx.step('send', { runId })
    const note = await ctx.localStep('note', () => leave('note', runId))
    return [take, price, charged, send, note]
  })
}

/** With `forever` it never comes to the end of its second step. */
export function registerHanging(
  engine: WorkflowEngine,
  write: (line: string) => void,
  forever: boolean
): void {
  engine.register('hanging', '1', async (ctx, { runId }: { runId: string }) => {
    const first = await ctx.localStep('first', () => {
      write(`${runId} first`)
      return 'first'
    })
    const second = await ctx.localStep('second', async () => {
      write(`${runId} second`)
      if (forever) await pause(3_600_000)
      return 'second'
    })
    return [first, second]
  })
}
