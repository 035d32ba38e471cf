/*
 * Every store that the behaviour of engines is tested on. A kind is opened once per group of tests and
 * gives each test empty data.
 */
import { CodecStateStore } from '../../src/store/codec/codec_store.ts'
import { OPTIONAL_MEMBERS } from '../../src/store/ports/members.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { backend } from './backends.ts'
import { aesCodec } from './codecs.ts'
import { createDatabase, type Dialect, type TestDatabase } from './databases.ts'
import { REAL_TRANSPORT } from './real_transports.ts'
import { emptyTables } from './shared_database.ts'

export interface OpenStore {
  /** A store without data. */
  empty(): Promise<StateStore>
  /** The database behind it, if there is one. */
  database?: TestDatabase
  close(): Promise<void>
}

export interface StoreKind {
  name: string
  /** Has every member natively, so what races do is decided by single statements. */
  complete: boolean
  dialect?: Dialect
  open(): Promise<OpenStore>
}

const memory: StoreKind = {
  name: 'in memory',
  complete: true,
  open: async () => ({ empty: async () => new InMemoryStateStore(), close: async () => {} }),
}

/** Everything optional is missing: the fallbacks do the work. */
const required: StoreKind = {
  name: 'in memory, required members only',
  complete: false,
  open: async () => ({
    empty: async () => withoutMembers(new InMemoryStateStore(), OPTIONAL_MEMBERS),
    close: async () => {},
  }),
}

/** Everything is encrypted, and whatever a store would have to read of a payload is missed. */
const codec: StoreKind = {
  name: 'codec over memory',
  complete: true,
  open: async () => ({
    empty: async () =>
      new CodecStateStore(new InMemoryStateStore(), aesCodec(), { coverage: 'extended' }),
    close: async () => {},
  }),
}

const lucid = (dialect: Dialect): StoreKind => ({
  name: `Lucid on ${dialect}`,
  complete: true,
  dialect,
  async open() {
    const database = await createDatabase(dialect)
    const store = new LucidStateStore(database.db)
    await store.ensureSchema()
    return {
      database,
      close: () => database.cleanup(),
      async empty() {
        await emptyTables(database.db)
        return store
      },
    }
  },
})

/** `fallbacks: false` leaves out the stripped store: for what only a complete store promises. */
export async function storesUnderTest(options: { fallbacks?: boolean } = {}): Promise<StoreKind[]> {
  // What a broker changes is the same on every store.
  if (REAL_TRANSPORT) return [memory]
  const kinds = options.fallbacks === false ? [memory, codec] : [memory, codec, required]
  kinds.push(lucid('sqlite'))
  if (await backend('postgres')) kinds.push(lucid('postgres'))
  if (await backend('mysql')) kinds.push(lucid('mysql'))
  return kinds
}

/** A view of a store that lacks some members. */
export function withoutMembers(store: StateStore, members: readonly string[]): StateStore {
  return new Proxy(store, {
    get(target, name) {
      if (typeof name === 'string' && members.includes(name)) return undefined
      const member = Reflect.get(target, name) as unknown
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
