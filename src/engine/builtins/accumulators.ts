/*
 * Accumulators: one run per target workflow collects events and starts the target with the last of them
 * (debounce) or with all of them (batch). Each collection ends its link; the next one begins empty.
 */
import { SignalTimeoutError } from '../../errors.ts'
import { nextLinkId } from '../../foundation/ids.ts'
import { accumulatorToken } from '../../foundation/tokens.ts'
import type { FullStore } from '../../store/full_store.ts'
import type { WorkflowCtx, WorkflowFn } from '../../types/ctx.ts'
import { isTerminalStatus } from '../../types/run.ts'
import type { Signals } from '../delivery/signals.ts'
import type { EventBatch } from '../event_batch.ts'
import type { Registry } from '../registry.ts'
import { frontierOf } from '../runs/frontier.ts'
import type { Starter } from '../runs/starter.ts'

const WORKFLOWS = { debounce: '__evt_debounce', batch: '__evt_batch' } as const
const VERSION = '1'
/** Events that one link takes at most, so that its history stays small. */
const MOST_EVENTS = 500

interface Collected {
  /** Names the run that is started with it. */
  id: string
  payload: unknown
}

interface LinkInput {
  target: string
  windowMs: number
  maxSize?: number
  /** What a full link hands to the next. */
  last?: Collected
}

export interface AccumulatorsOptions {
  store: Pick<FullStore, 'getRuns'>
  registry: Registry
  starter: Pick<Starter, 'start'>
  signals: Pick<Signals, 'post'>
  report: (error: unknown, what: string) => void
}

export class Accumulators {
  readonly #options: AccumulatorsOptions

  constructor(options: AccumulatorsOptions) {
    this.#options = options
    const { registry } = options
    registry.register(WORKFLOWS.debounce, VERSION, this.#debounce as WorkflowFn)
    registry.register(WORKFLOWS.batch, VERSION, this.#batch as WorkflowFn)
  }

  /** Hands an event to the accumulator of `target`. Durable when it resolves. */
  async feed(target: string, batch: EventBatch, event: Collected): Promise<void> {
    const token = accumulatorToken(target)
    const { windowMs, maxSize } = batch
    const input: LinkInput = { target, windowMs, maxSize }
    await this.#ensureRun(WORKFLOWS[batch.mode], input, token)
    await this.#options.signals.post(token, event, { buffer: true })
  }

  /** The first link, or one after a chain whose last link ended for good. */
  async #ensureRun(workflow: string, input: LinkInput, id: string): Promise<void> {
    const { store, starter } = this.#options
    const first = await starter.start(workflow, input, id)
    if (!isTerminalStatus(first.status)) return
    const last = await frontierOf(store, id)
    if (!last || !isTerminalStatus(last.status)) return
    await starter.start(workflow, input, nextLinkId(last.id), { namespace: last.namespace })
  }

  readonly #debounce = async (ctx: WorkflowCtx, input: LinkInput): Promise<unknown> => {
    const token = accumulatorToken(input.target)
    const timeoutMs = input.windowMs
    let last = input.last ?? (await ctx.waitForSignal<Collected>(token))
    for (let n = 0; n < MOST_EVENTS; n++) {
      const next = await nextWithin(ctx, token, timeoutMs)
      if (!next) return this.#end(ctx, input, last)
      last = next
    }
    return ctx.continueAsNew({ ...input, last })
  }

  readonly #batch = async (ctx: WorkflowCtx, input: LinkInput): Promise<unknown> => {
    const token = accumulatorToken(input.target)
    const events = [await ctx.waitForSignal<Collected>(token)]
    const until = (await ctx.now()) + input.windowMs
    const size = Math.min(input.maxSize ?? MOST_EVENTS, MOST_EVENTS)
    while (events.length < size) {
      const left = until - (await ctx.now())
      const next = left > 0 ? await nextWithin(ctx, token, left) : undefined
      if (!next) break
      events.push(next)
    }
    const payload = { events: events.map((event) => event.payload) }
    return this.#end(ctx, input, { id: events[0].id, payload })
  }

  async #end(
    ctx: WorkflowCtx,
    { last, ...input }: LinkInput,
    { id, payload }: Collected
  ): Promise<unknown> {
    const { target } = input
    await ctx.localStep('start', async () => {
      try {
        await this.#options.starter.start(target, payload, `evt:${id}:${target}`)
      } catch (error) {
        // A target that refuses its input must not keep the next events from it.
        this.#options.report(error, `collected events could not start workflow "${target}"`)
      }
    })
    return ctx.continueAsNew(input)
  }
}

/** The next event, or undefined when none came in time. */
async function nextWithin(
  ctx: WorkflowCtx,
  token: string,
  timeoutMs: number
): Promise<Collected | undefined> {
  try {
    return await ctx.waitForSignal<Collected>(token, { timeoutMs })
  } catch (error) {
    if (error instanceof SignalTimeoutError) return undefined
    throw error
  }
}
