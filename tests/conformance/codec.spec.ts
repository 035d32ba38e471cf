/*
 * The state-store contract on an encrypting codec store: over the complete stores, and over one of required
 * members only, where the fallbacks above it read and write through the codec.
 */
import { CodecStateStore } from '../../src/store/codec/codec_store.ts'
import { fullStore } from '../../src/store/full_store.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { runStateStoreContract } from '../../src/testing/conformance.ts'
import { aesCodec, lateCodec } from '../helpers/codecs.ts'
import { createDatabase } from '../helpers/databases.ts'
import { FALLBACK_EXCEPTIONS } from './fallback_exceptions.ts'
import { requiredOnly } from './required_only.ts'

runStateStoreContract('a codec store over the in-memory store', async () => {
  const store = new CodecStateStore(new InMemoryStateStore(), aesCodec())
  return { store, cleanup: () => store.close() }
})

runStateStoreContract('a late codec with extended coverage, completed', async () => {
  const codec = lateCodec(aesCodec())
  const store = new CodecStateStore(new InMemoryStateStore(), codec, { coverage: 'extended' })
  return { store: fullStore(store), cleanup: () => store.close() }
})

runStateStoreContract(
  'a codec store over required members only, completed',
  async () => {
    const inner = new InMemoryStateStore()
    const store = fullStore(new CodecStateStore(requiredOnly(inner), aesCodec()))
    return { store, cleanup: () => inner.close() }
  },
  {
    except: {
      ...FALLBACK_EXCEPTIONS,
      'a delivery and the end of its wait at once: one outcome, and the payload is not lost':
        'both look at the position before either writes, and encoding lies in between',
    },
  }
)

runStateStoreContract('a codec store over Lucid on SQLite', async () => {
  const { db, connectionName, cleanup } = await createDatabase('sqlite')
  const inner = new LucidStateStore(db, { connectionName })
  const store = new CodecStateStore(inner, aesCodec(), { coverage: 'extended' })
  await store.ensureSchema()
  return { store, cleanup }
})
