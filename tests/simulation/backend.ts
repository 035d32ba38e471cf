/*
 * Backends: the real store behind the simulated network.
 */
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import type { Tables } from '../../src/store/memory/tables.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import type { SignalWaiter } from '../../src/types/checkpoint.ts'
import type { RuleContext } from './rules.ts'
import { memoryReader, Shadow } from './shadow.ts'

export interface Backend {
  store: StateStore
  shadow: Shadow
  /** An operation has taken effect when its call returns. */
  synchronous: boolean
  call(name: string, args: unknown[]): Promise<unknown>
  /** Snapshots; absent where the store has real ones. */
  hasWaiter?(token: string): boolean
  hasBuffered?(token: string): boolean
  /** Puts the buffered payloads of these tokens aside; the answer brings them back. */
  hideBuffered?(tokens: string[]): () => void
  waiters(): Promise<SignalWaiter[]>
  waitersNow?(): SignalWaiter[]
  close(): Promise<void>
}

/** What a world lends to a store whose rules are changed. */
export type BackendContext = Pick<RuleContext, 'random' | 'after'>

/** `modify` changes what the store does: a rule that is switched off, a member taken away. */
export function memoryBackend(
  context: BackendContext = { random: () => 0.5, after: () => {} },
  modify: (store: StateStore, context: RuleContext) => StateStore = (store) => store
): Backend {
  const memory = new InMemoryStateStore()
  const { tables } = memory as unknown as { tables: Tables }
  const store = modify(memory, {
    ...context,
    run: (runId) => tables.runs.read(runId),
    waiter: (token) => tables.signals.waiter(token),
  })
  return {
    store,
    shadow: new Shadow(memoryReader(memory)),
    synchronous: true,
    call: (name, args) => (store[name as never] as (...a: unknown[]) => Promise<unknown>)(...args),
    hasWaiter: (token) => tables.signals.hasWaiter(token),
    hasBuffered: (token) => tables.signals.hasBuffered(token),
    hideBuffered(tokens) {
      const hidden = [...new Set(tokens)].map((token) => {
        const payloads: unknown[] = []
        while (tables.signals.hasBuffered(token)) {
          payloads.push(tables.signals.takeBuffered(token)!.payload)
        }
        return { token, payloads }
      })
      return () => {
        for (const { token, payloads } of hidden) {
          for (const payload of payloads) tables.signals.buffer(token, payload)
        }
      }
    },
    waiters: async () => tables.signals.withPrefix(''),
    waitersNow: () => tables.signals.withPrefix(''),
    close: () => memory.close(),
  }
}
