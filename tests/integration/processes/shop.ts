/*
 * A workflow under load: a step that takes a moment, a dispatched one, a row that must be there once, a
 * sleep that is longer for every run, and a child.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import type { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import { LEDGER } from './five_steps.ts'

const MOMENT_MS = 50

export function registerShop(
  engine: WorkflowEngine,
  clientOf: (tx: unknown) => TransactionClientContract
): void {
  engine.handle('price', async (input) => {
    await pause(MOMENT_MS)
    return (input as number) * 2
  })
  engine.register('parcel', '1', (ctx, n: number) => ctx.localStep('wrap', () => n + 1))
  engine.register('shop', '1', async (ctx, n: number) => {
    await ctx.localStep('look', () => pause(MOMENT_MS))
    const price = await ctx.step<number>('price', n)
    await ctx.transaction('charge', async (tx) => {
      await clientOf(tx).insertQuery().table(LEDGER).insert({ run_id: ctx.runId })
    })
    await ctx.sleep(MOMENT_MS * n)
    return price + (await ctx.child<number>('parcel', n))
  })
}
