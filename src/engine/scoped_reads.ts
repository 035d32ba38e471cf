/*
 * `scopeReads`: an engine to which runs of other namespaces do not exist.
 */
import type { FullStore } from '../store/full_store.ts'
import type { EngineConfig } from './deps.ts'

/** The store as the engine reads it: kept to its namespace where that is asked for, and possible. */
export function readsOf(
  store: FullStore,
  { scopeReads, namespace, announce }: Pick<EngineConfig, 'scopeReads' | 'namespace' | 'announce'>
): FullStore {
  if (!scopeReads) return store
  if (!store.capabilities.withScope) {
    announce(
      'durable: this store has no StateStore.withScope: scopeReads has no effect, and runs of other ' +
        'namespaces can be read'
    )
  }
  return store.withScope({ namespace })
}
