/*
 * Workflows put together at random out of what a body can ask for, all of them sound: an exploration of
 * any of them finds nothing. Races are left out, since a crash may decide them otherwise.
 */
import { test } from '@japa/runner'
import { FatalError, isWorkflowControlFlowSignal, type WorkflowCtx } from '../../index.ts'
import { assertSurvivesCrashes, type NamedWorkflow } from '../../src/testing/main.ts'
import { seeded } from '../simulation/random.ts'

const SEEDS = Number(process.env.SEEDS ?? 12)

type Op =
  | { t: 'step' | 'local' | 'saga' | 'transaction' | 'fails' | 'late' | 'signal'; id: number }
  | { t: 'now' | 'side' | 'event' | 'patched' | 'sleep'; id: number }
  | { t: 'child' | 'fan' | 'spawn'; id: number; n: number }
  | { t: 'both' | 'sequence'; id: number; of: Op[] }

const LEAVES = [
  'step',
  'local',
  'saga',
  'transaction',
  'fails',
  'late',
  'signal',
  'now',
  'side',
  'event',
  'patched',
  'sleep',
] as const

function program(roll: () => number, depth = 2, ids = { next: 0 }): Op[] {
  return Array.from({ length: 1 + Math.floor(roll() * 4) }, (): Op => {
    const id = ids.next++
    const kind = roll()
    const n = 1 + Math.floor(roll() * 3)
    if (depth > 0 && kind < 0.2) {
      const of = [program(roll, depth - 1, ids), program(roll, depth - 1, ids)].map((ops): Op => ({
        t: 'sequence',
        id: ids.next++,
        of: ops,
      }))
      return { t: 'both', id, of }
    }
    if (kind < 0.3) return { t: 'child', id, n }
    if (kind < 0.38) return { t: 'fan', id, n }
    if (kind < 0.44) return { t: 'spawn', id, n }
    return { t: LEAVES[Math.floor(roll() * LEAVES.length)], id }
  })
}

async function caught(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work
  } catch (error) {
    if (isWorkflowControlFlowSignal(error)) throw error
    return (error as { code?: string }).code ?? 'failed'
  }
}

async function play(ctx: WorkflowCtx, op: Op): Promise<unknown> {
  const name = `${op.t} ${op.id}`
  switch (op.t) {
    case 'step':
      return ctx.step('echo', name, { retries: 2 })
    case 'local':
      return ctx.localStep(name, () => name, { retries: 2, backoffMs: 100 })
    case 'saga':
      return ctx.localStep(name, () => name, { compensate: () => {} })
    case 'transaction':
      return ctx.transaction(name, async () => name)
    case 'fails':
      return caught(
        ctx.localStep(name, () => {
          throw new FatalError(name, 'planned')
        })
      )
    case 'late':
      return caught(ctx.waitForSignal(`${ctx.runId} ${name}`, { timeoutMs: 60_000 }))
    case 'signal':
      return ctx.waitForSignal(`given ${op.id}`, { timeoutMs: 86_400_000 })
    case 'now':
      return ctx.now()
    case 'side':
      return ctx.sideEffect(() => Math.random())
    case 'event':
      return ctx.setEvent('stage', name)
    case 'patched':
      return ctx.patched(name)
    case 'sleep':
      return ctx.sleep(1000 * (1 + op.id))
    case 'child':
      return ctx.child('child', op.n)
    case 'fan':
      return ctx.all(
        'child',
        Array.from({ length: op.n }, (_, i) => i)
      )
    case 'spawn':
      return ctx.startChild('child', op.n)
    case 'both':
      return Promise.all(op.of.map((one) => play(ctx, one)))
    case 'sequence': {
      const answers: unknown[] = []
      for (const one of op.of) answers.push(await play(ctx, one))
      return answers
    }
  }
}

function signalsOf(ops: Op[]): Record<string, unknown> {
  return Object.assign(
    {},
    ...ops.map((op) =>
      'of' in op ? signalsOf(op.of) : op.t === 'signal' ? { [`given ${op.id}`]: op.id } : {}
    )
  ) as Record<string, unknown>
}

const child: NamedWorkflow<number> = {
  name: 'child',
  run: async (ctx, n) => {
    await ctx.sleep('5s')
    return ctx.step('echo', n)
  },
}

test.group('exploreCrashes | random sound workflows', (group) => {
  group.tap((t) => t.timeout(120_000))

  for (let seed = 1; seed <= SEEDS; seed++) {
    test(`seed ${seed} survives`, async () => {
      const roll = seeded(seed)
      const ops = program(roll)
      const fails = roll() < 0.3
      await assertSurvivesCrashes(
        async (ctx: WorkflowCtx) => {
          const answers = await play(ctx, { t: 'sequence', id: -1, of: ops })
          if (fails) throw new FatalError('at the end', 'planned')
          return answers
        },
        null,
        { steps: { echo: (x) => x }, signals: signalsOf(ops), workflows: [child] }
      )
    })
  }
})
