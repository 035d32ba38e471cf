/*
 * Bodies: how a program runs. `play` interprets a program over any way of performing a leaf, so that the
 * real engine, the reference and the equivalence runs execute the very same code. Whatever the body sees
 * goes to one log, in the order seen, and `cond` branches on that log: a result seen in another order
 * takes another path.
 */
import type { DurableWebhook, WorkflowCtx } from '../../src/types/ctx.ts'
import { isQueued, QUEUE } from './slots.ts'
import { DURABLE_STEP_NAME, type StepRef } from '../../src/types/step.ts'
import type { FanLeaf, Leaf, Node, Program } from './programs.ts'
import { childNameOf, nameOf } from './programs.ts'
import { ENTITY, keyOf, operationOf } from './entities.ts'
import { isWatched, type Windows } from './windows.ts'
import { macrotask } from './virtual_time.ts'
import type { EffectScope, Effects } from './effects.ts'

export type PerformLeaf = (leaf: Leaf, seen: () => string) => Promise<unknown>
export type WebhookLeaf = Extract<Leaf, { t: 'webhook' }>

export interface BodyOutput {
  value: unknown
  log: unknown[]
}

/** Asks for a run that continues this one. */
export class NextRound extends Error {}

export async function play(
  program: Program,
  round: number,
  perform: PerformLeaf,
  /** Takes the position of a callback that is waited for later. */
  mint: (leaf: WebhookLeaf) => void
): Promise<BodyOutput> {
  const log: unknown[] = []
  const seen = () => JSON.stringify(log)
  const each = (nodes: Node[]) => nodes.map((node) => go(node))

  async function go(node: Node): Promise<unknown> {
    switch (node.t) {
      case 'seq': {
        let value: unknown
        for (const part of node.of) value = await go(part)
        return value
      }
      case 'all':
        return Promise.all(each(node.of))
      case 'race':
        return Promise.race(each(node.of))
      case 'any':
        return Promise.any(each(node.of))
      case 'allSettled': {
        const ends = await Promise.allSettled(each(node.of))
        return ends.map((end) => (end.status === 'fulfilled' ? end.value : said(end.reason)))
      }
      case 'cond':
        return go(node.of[log.length % node.of.length])
      case 'try':
        try {
          return await go(node.body)
        } catch (error) {
          // Swallows a suspension as well: what an unwound body does must not count.
          log.push(`caught ${said(error)}`)
          return node.catch ? await go(node.catch) : 'caught'
        } finally {
          if (node.finally) await go(node.finally)
        }
      case 'webhook':
        mint(node)
        if (node.between) await go(node.between)
        return answer(node)
      default:
        return answer(node)
    }
  }

  async function answer(leaf: Leaf): Promise<unknown> {
    const value = await perform(leaf, seen)
    log.push(value)
    return value
  }

  const value = await go(program.root)
  if (round < program.rounds) throw new NextRound()
  return { value, log }
}

/** What a body tells of an error. */
function said(error: unknown): string {
  const { errors, message, failures } = error as Error & {
    errors?: unknown[]
    failures?: { index: number; error: string }[]
  }
  if (failures) return `${message} ${failures.map(({ index, error: text }) => [index, text])}`
  return errors ? `any: ${errors.map(said).join(' | ')}` : message
}

export interface BodyContext {
  ctx: WorkflowCtx
  /** The workflow's name: those of its children begin with it. */
  workflow: string
  effects: Effects
  scope: EffectScope
  /** Of steps that have one. */
  windows?: Windows
}

/** The program as a workflow body. */
export async function workflowBody(
  program: Program,
  round: number,
  context: BodyContext
): Promise<BodyOutput> {
  const { ctx, effects, scope } = context
  const hooks = new Map<number, DurableWebhook>()
  const mint = (leaf: WebhookLeaf) => {
    effects.asked()
    const hook = ctx.webhook()
    hooks.set(leaf.id, hook)
    effects.minted(scope, hook.token)
  }
  try {
    const perform: PerformLeaf = (leaf, seen) => onCtx({ ...context, hooks }, leaf, seen)
    return await play(program, round, perform, mint)
  } catch (error) {
    if (error instanceof NextRound) return context.ctx.continueAsNew({ round: round + 1 })
    throw error
  }
}

type LeafContext = BodyContext & { hooks: Map<number, DurableWebhook> }

async function onCtx(context: LeafContext, leaf: Leaf, seen: () => string): Promise<unknown> {
  const { effects, scope } = context
  effects.asked()
  const value = await callCtx(context, leaf, seen())
  effects.received(scope, leaf, value)
  return value === undefined ? leaf.t : value
}

function callCtx(context: LeafContext, leaf: Leaf, basis: string): Promise<unknown> {
  const { ctx, effects, scope, workflow, hooks } = context
  const name = nameOf(leaf)
  switch (leaf.t) {
    case 'step': {
      const { id, bad, tries, backoffMs, undo } = leaf
      return ctx.step(
        name,
        { run: ctx.runId, id, bad, undo },
        {
          retries: tries,
          backoffMs,
          compensate: undo && 'undo',
          queue: isQueued(id) ? QUEUE : undefined,
          ...(isWatched(id) ? context.windows : undefined),
        }
      )
    }
    case 'local': {
      const { tries, backoffMs, undo, timeoutMs } = leaf
      return ctx.localStep(name, () => effects.local(scope, leaf, basis), {
        retries: tries,
        backoffMs,
        timeoutMs,
        compensate: undo && (() => effects.undo(scope, leaf)),
      })
    }
    case 'transaction':
      return ctx.transaction(name, (tx) => effects.transaction(scope, leaf, basis, tx))
    case 'now':
      return ctx.now()
    case 'sideEffect':
      return ctx.sideEffect(() => `side:${leaf.id}.${effects.roll(`side ${leaf.id}`)}`)
    case 'sleep':
      return ctx.sleep(leaf.ms)
    case 'signal': {
      const { timeoutMs } = leaf
      return ctx.waitForSignal(leaf.token, timeoutMs === undefined ? {} : { timeoutMs })
    }
    case 'setEvent':
      return ctx.setEvent(name, leaf.id)
    case 'patched':
      return ctx.patched(name)
    case 'child':
      return ctx.child(`${workflow}.${childNameOf(leaf)}`, { round: 0 })
    case 'spawn':
      return ctx.startChild(
        `${workflow}.${childNameOf(leaf)}`,
        { round: 0 },
        spawnIdOf(ctx, leaf.id)
      )
    case 'join':
      return ctx.child(
        `${workflow}.${childNameOf(leaf)}`,
        { round: 0 },
        spawnIdOf(ctx, leaf.spawned)
      )
    case 'fan':
      return callFan(ctx, leaf, workflow)
    case 'event':
      return ctx.waitForEvent(leaf.event, { match: leaf.match, timeoutMs: leaf.timeoutMs })
    case 'update':
      return ctx.onUpdate(leaf.update, { timeoutMs: leaf.timeoutMs })
    case 'task': {
      const { tries, backoffMs, undo } = leaf
      return ctx.task(name, () => effects.handOver(scope, leaf, basis), {
        retries: tries,
        backoffMs,
        compensate: undo && (() => effects.undo(scope, leaf)),
      })
    }
    case 'webhook':
      return hooks.get(leaf.id)!.wait({ timeoutMs: leaf.timeoutMs })
    case 'breakpoint':
      return ctx.breakpoint(name)
    case 'attributes':
      return ctx.upsertSearchAttributes(leaf.values)
    case 'callEntity':
      return ctx.callEntity(ENTITY, keyOf(ctx.runId, leaf), leaf.op, operationOf(ctx.runId, leaf))
    case 'signalEntity':
      return ctx.signalEntity(ENTITY, leaf.key, leaf.op, operationOf(ctx.runId, leaf))
    case 'pause':
      return leaf.ms < 100 ? macrotask() : scope.time.sleep(leaf.ms)
  }
}

const spawnIdOf = (ctx: WorkflowCtx, id: number): string => `${ctx.runId}.x${id}`

function callFan(ctx: WorkflowCtx, leaf: FanLeaf, workflow: string): Promise<unknown> {
  const { id, size, bad, tries, backoffMs, mode, concurrency, program } = leaf
  const indexes = Array.from({ length: size }, (_, index) => index)
  if (program) {
    const child = `${workflow}.${childNameOf(leaf)}`
    const inputs = indexes.map((index) => ({ round: 0, index }))
    return mode === 'settled'
      ? ctx.allSettled(child, inputs, { concurrency })
      : ctx.all(child, inputs, { mode, concurrency })
  }
  const step = Object.assign(() => '', { [DURABLE_STEP_NAME]: nameOf(leaf) }) as StepRef
  const inputs = indexes.map((index) => ({ run: ctx.runId, id, bad, index }))
  const policy = { retries: tries, backoffMs, concurrency }
  return mode === 'settled'
    ? ctx.allSettled(step, inputs, policy)
    : ctx.all(step, inputs, { ...policy, mode })
}
