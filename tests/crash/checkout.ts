/*
 * The workflow that is killed over and over: a bit of everything a body can ask for. Every step body says
 * when it begins and ends, and which order number it was given: two bodies of one run that saw different
 * numbers would mean that something observed a captured value before it was durable.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { approvalToken, LEDGER } from './protocol.ts'

export interface Order {
  runId: string
  bad: boolean
}

export interface Job {
  order: Order
  number: string
}

export interface Receipts {
  begin(job: Job, step: string): Promise<void>
  end(job: Job, step: string): Promise<void>
}

/**
 * How long each body works: long enough for its turn to park, or to commit that it runs, before it ends.
 * `pick` and `pack` run side by side, far enough apart to land one after the other on most machines.
 */
const WORK_MS: Record<string, number> = {
  'reserve': 60,
  'pick': 80,
  'pack': 200,
  'report': 60,
  'compensate:pick': 60,
  'compensate:reserve': 60,
}

const LOCAL_MS = 5

export function registerCheckout(engine: WorkflowEngine, receipts: Receipts): void {
  const work = async (step: string, job: Job) => {
    await receipts.begin(job, step)
    await pause(WORK_MS[step] ?? LOCAL_MS)
    await receipts.end(job, step)
    return answerOf(step, job.order.runId)
  }
  const undo = (step: string) => (input: unknown) => work(step, (input as { input: Job }).input)
  for (const step of ['reserve', 'pick', 'report']) {
    engine.handle(step, (job) => work(step, job as Job))
  }
  engine.handle('release', undo('compensate:reserve'))
  engine.handle('unpick', undo('compensate:pick'))

  const book = (entry: string, job: Job) => async (tx: unknown) => {
    await receipts.begin(job, entry)
    const client = tx as TransactionClientContract
    await client
      .insertQuery()
      .table(LEDGER)
      .insert({ run_id: job.order.runId, entry, number: job.number })
    await receipts.end(job, entry)
    return answerOf(entry, job.order.runId)
  }

  engine.register('checkout', '1', async (ctx: WorkflowCtx, order: Order) => {
    const number = await ctx.sideEffect(() => randomUUID())
    const job: Job = { order, number }
    const charge = await ctx.transaction('charge', book('charge', job))
    const receipt = await ctx.localStep('receipt', () => work('receipt', job), {
      compensate: async () => void (await work('compensate:receipt', job)),
    })
    const reserve = await ctx.step('reserve', job, { compensate: 'release' })
    await ctx.sleep(80)
    const approval = await ctx.waitForSignal(approvalToken(order.runId))
    const [pick, pack, at] = await Promise.all([
      ctx.step('pick', job, { compensate: 'unpick' }),
      ctx.localStep('pack', () => work('pack', job)),
      ctx.now(),
    ])
    await ctx.localStep('inspect', async () => {
      await work('inspect', job)
      if (order.bad) throw new FatalError(BAD_ORDER)
    })
    const ship = await ctx.transaction('ship', book('ship', job))
    const report = await ctx.step('report', job)
    return { number, charge, receipt, reserve, approval, pick, pack, at, ship, report }
  })
}

export const BAD_ORDER = 'the order is bad'
export const APPROVAL = { by: 'the boss' }
export const answerOf = (step: string, runId: string): string => `${step} of ${runId}`

/** Bodies that a good, or a bad order runs, and ledger entries that it leaves. */
export const EXPECTED = {
  good: {
    steps: ['charge', 'receipt', 'reserve', 'pick', 'pack', 'inspect', 'ship', 'report'],
    undos: [] as string[],
    ledger: ['charge', 'ship'],
  },
  bad: {
    steps: ['charge', 'receipt', 'reserve', 'pick', 'pack', 'inspect'],
    undos: ['compensate:pick', 'compensate:reserve', 'compensate:receipt'],
    ledger: ['charge'],
  },
}
