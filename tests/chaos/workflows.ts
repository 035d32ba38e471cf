/*
 * The mix that is played: one workflow of every kind of work. Those of the second deploy are newer in one of
 * them and the same in the others. What a run has to leave behind is in expectations.ts.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '@adonisjs/lucid/database'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { FatalError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { StepHandler, StepOptions } from '../../src/types/step.ts'
import { type Carrier, crosses, policyOf } from './carriers.ts'
import { book, noteUndo } from './ledger.ts'

/** Input of every workflow. `n` is unique, `pause` is in ms, `key` is one of a few. */
export interface Job {
  n: number
  pause: number
  key: string
}

export type Deploy = 1 | 2

export const SINGLETON_LIMIT = 2
export const QUOTA = { key: 'gpu', limit: 3 }
export const MEMBERS_OF_FAMILY = 4
export const PRESS = { name: 'press', concurrency: 2, retryMs: 500 }
export const WIDTH_OF_FAN = 10
export const LINKS_OF_CHAIN = 4
export const WINDOW_MS = 2_000
/** Every window that an outage hides from the schedules is started afterwards. */
export const CATCHUP = 100
export const NEVER = 'never'

export interface World {
  engine: WorkflowEngine
  db: Database
  deploy: Deploy
  carrier: Carrier
}

type Body = (ctx: WorkflowCtx, job: Job) => Promise<unknown>

export function registerAll(world: World): void {
  const { engine, deploy, carrier, db } = world
  if (!crosses(carrier)) {
    for (const [name, handler] of Object.entries(stepsOf(db))) engine.handle(name, handler)
  }
  engine.registerQueue(PRESS)
  for (const [name, body] of Object.entries(bodiesOf(world))) engine.register(name, '1', body)
  if (deploy === 2) engine.register('order', '2', newOrder(policyOf(carrier)))
  engine.register('guest', '1', stayInside, {
    singleton: { key: (input) => (input as Job).key, limit: SINGLETON_LIMIT },
  })
  engine.register('render', '1', stayInside, {
    concurrency: { key: () => QUOTA.key, limit: QUOTA.limit },
  })
  engine.register('window', '1', (ctx) => book(ctx, 'window'))
  engine.registerEntity<{ sum: number }>('account', {
    initialState: () => ({ sum: 0 }),
    handlers: {
      add: (state, amount: number) => {
        state.sum += amount
        return state.sum
      },
    },
  })
}

/** Each may run again. */
export function stepsOf(db: Database): Record<string, StepHandler> {
  return {
    double: async (input) => {
      await pause(5)
      return (input as number) * 2
    },
    flaky: async (input) => {
      if (Math.random() < 0.3) throw new Error('try again')
      return (input as Job).n
    },
    unreserve: async (undo) => {
      const { runId } = (undo as { input: { runId: string } }).input
      await noteUndo(db, runId, 'reserve')
      return null
    },
    reserve: async () => 'reserved',
  }
}

function bodiesOf({ db, carrier }: World): Record<string, Body> {
  const policy = policyOf(carrier)
  return {
    order: async (ctx, job) => {
      await book(ctx, 'charge')
      const doubled = await ctx.step<number>('double', job.n, policy)
      await ctx.sleep(job.pause)
      const same = await ctx.step<number>('flaky', job, { retries: 50, backoffMs: 20 })
      await book(ctx, 'mail')
      return doubled + same
    },
    approval: async (ctx, job) => {
      const first = await ctx.waitForSignal<number>(`approve:${ctx.runId}`)
      await book(ctx, 'approved')
      const second = await ctx.onUpdate<number>('amend')
      const third = await ctx.task<number>('print', async () => {})
      await ctx.setEvent('printed', third)
      await book(ctx, 'printed')
      return [job.n, first, second, third]
    },
    listener: async (ctx) => {
      const { of } = await ctx.waitForEvent<{ of: string }>('parcel', { match: { of: ctx.runId } })
      await book(ctx, 'received')
      return of
    },
    saga: async (ctx) => {
      await book(ctx, 'hold')
      const reserve = { ...policy, compensate: 'unreserve' }
      await ctx.step('reserve', { runId: ctx.runId }, reserve)
      await ctx.localStep('pack', () => 'packed', {
        compensate: () => noteUndo(db, ctx.runId, 'pack'),
      })
      throw new FatalError('out of stock')
    },
    cancelled: async (ctx) => {
      await book(ctx, 'hold')
      await ctx.localStep('pack', () => 'packed', {
        compensate: () => noteUndo(db, ctx.runId, 'pack'),
      })
      await ctx.waitForSignal(`${NEVER}:${ctx.runId}`)
    },
    member: async (ctx, job) => {
      await ctx.sleep(job.pause)
      await book(ctx, 'member')
      return job.n
    },
    family: async (ctx, job) => {
      const inputs = Array.from({ length: MEMBERS_OF_FAMILY }, (_, i) => ({ ...job, n: i }))
      const numbers = await ctx.all<number>('member', inputs)
      const own = await ctx.child<number>('member', { ...job, n: 100 })
      await book(ctx, 'family')
      return numbers.reduce((sum, n) => sum + n, own)
    },
    fan: async (ctx, job) => {
      const branches = Array.from({ length: WIDTH_OF_FAN }, (_, i) =>
        ctx.step<number>('double', job.n + i, policy)
      )
      const doubled = await Promise.all(branches)
      await book(ctx, 'fan')
      return doubled.reduce((sum, n) => sum + n, 0)
    },
    print: async (ctx, job) => {
      const sheets = await Promise.all(
        [1, 2, 3].map((i) =>
          ctx.step<number>('double', job.n + i, { ...policy, queue: PRESS.name })
        )
      )
      await book(ctx, 'print')
      return sheets.reduce((sum, n) => sum + n, 0)
    },
    chain: async (ctx, job) => {
      const link = (job as Job & { link?: number }).link ?? 1
      await book(ctx, `link ${link}`)
      await ctx.sleep(job.pause / 4)
      if (link < LINKS_OF_CHAIN) await ctx.continueAsNew({ ...job, link: link + 1 })
      return link
    },
    deposit: async (ctx, job) => {
      await ctx.signalEntity('account', job.key, 'add', 1)
      const sum = await ctx.callEntity<number>('account', job.key, 'add', 2)
      await book(ctx, 'deposit')
      return sum > 0
    },
  }
}

/** Newer than `order` by a step that only its version has. */
const newOrder =
  (policy: StepOptions): Body =>
  async (ctx, job) => {
    await book(ctx, 'charge')
    const doubled = await ctx.step<number>('double', job.n, policy)
    await book(ctx, 'insure')
    await ctx.sleep(job.pause)
    await book(ctx, 'mail')
    return doubled + job.n
  }

const stayInside: Body = async (ctx, job) => {
  await book(ctx, 'enter')
  if (job.n % 3 === 0) await ctx.sleep(job.pause)
  else await ctx.localStep('stay', () => pause(job.pause))
  await book(ctx, 'leave')
  return job.n
}
