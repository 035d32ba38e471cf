import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { runStateStoreContract } from '../../src/testing/conformance.ts'

runStateStoreContract('the in-memory store', async () => {
  const store = new InMemoryStateStore()
  return { store, cleanup: () => store.close() }
})
