/*
 * A run queue that a test plays: what is handed over stays where it is until the test delivers it, late,
 * twice or never. Wraps any transport of an engine.
 */
import type { RunQueue, Transport } from '../../src/transport/ports.ts'
import type { RunDispatch } from '../../src/wire/messages.ts'
import { until } from './until.ts'

type Taker = (run: RunDispatch) => Promise<void>

export class HeldRuns {
  /** What was handed over and not delivered yet, in order. */
  readonly waiting: { scope: string; run: RunDispatch }[] = []
  /** Everything that was ever handed over. */
  readonly sent: { scope: string; run: RunDispatch }[] = []
  /** While set, nothing is taken. */
  refuse?: Error
  readonly #takers: { scope: string; take: Taker; via: Transport }[] = []

  /** One engine's end of the queue, on its transport. */
  on(transport: Transport): Transport & RunQueue {
    const via: Transport & RunQueue = Object.assign(Object.create(transport) as Transport, {
      dispatchRun: async (run: RunDispatch, scope = run.namespace ?? 'default') => {
        if (this.refuse) throw this.refuse
        const entry = { scope, run: structuredClone(run) }
        this.waiting.push(entry)
        this.sent.push(entry)
      },
      onRun: (scope: string, take: Taker) => {
        const taker = { scope, take, via }
        this.#takers.push(taker)
        return async () => void this.#takers.splice(this.#takers.indexOf(taker), 1)
      },
    })
    return via
  }

  scopes(): string[] {
    return this.#takers.map(({ scope }) => scope)
  }

  /** The next message of a run, once it was handed over. */
  async next(runId: string): Promise<RunDispatch> {
    const found = () => this.waiting.find(({ run }) => run.runId === runId)
    await until(found, () => `a message of ${runId} among ${JSON.stringify(this.sent)}`)
    const entry = found()!
    this.waiting.splice(this.waiting.indexOf(entry), 1)
    return entry.run
  }

  /** Delivers everything that waits to whoever consumes its scope, until nothing is left. */
  async flow(): Promise<void> {
    while (this.waiting.length > 0) {
      const { scope, run } = this.waiting.shift()!
      const taker = this.#takers.find((one) => one.scope === scope)
      if (!taker) throw new Error(`nobody consumes ${scope}`)
      await taker.take(run)
    }
  }
}
