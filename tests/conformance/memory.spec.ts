import { fullStore } from '../../src/store/full_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { runStateStoreContract } from '../../src/testing/conformance.ts'
import { FALLBACK_EXCEPTIONS } from './fallback_exceptions.ts'
import { requiredOnly } from './required_only.ts'

runStateStoreContract('the in-memory store', async () => {
  const store = new InMemoryStateStore()
  return { store, cleanup: () => store.close() }
})

runStateStoreContract('the in-memory store, completed', async () => {
  const store = fullStore(new InMemoryStateStore())
  return { store, cleanup: () => store.close() }
})

runStateStoreContract(
  'a completed store of required members only',
  async () => {
    const store = new InMemoryStateStore()
    return { store: fullStore(requiredOnly(store)), cleanup: () => store.close() }
  },
  { except: FALLBACK_EXCEPTIONS }
)
