import { test } from '@japa/runner'
import { InMemoryAdmissionBackend } from '../../src/flow/memory_admission.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import {
  runAdmissionBackendContract,
  runStateStoreContract,
  StateStoreUnavailableError,
  type AdmissionSettings,
  type ContractTest,
  type StateStoreUnderContract,
} from '../../src/testing/conformance.ts'
import { STATE_STORE_CASES } from '../../src/testing/contracts/state_store.ts'
import { requiredOnly } from './required_only.ts'

interface Registered {
  title: string
  run: () => Promise<void>
}

/** A test runner that keeps what is registered. */
function recorder(withSkip = true) {
  const tests: Registered[] = []
  const skipped: string[] = []
  const runner: ContractTest = (title, run) => void tests.push({ title, run })
  if (withSkip) runner.skip = (title) => void skipped.push(title)
  return { runner, tests, skipped }
}

const titled = (tests: Registered[], part: string): Registered => {
  const found = tests.find(({ title }) => title.includes(part))
  if (!found) throw new Error(`nothing is registered for "${part}"`)
  return found
}

const made = (store: StateStore, fields: Partial<StateStoreUnderContract> = {}) => ({
  store,
  cleanup: () => {},
  ...fields,
})

/** What is printed while `work` runs. */
async function printed(work: () => Promise<unknown>): Promise<string[]> {
  const lines: string[] = []
  const { write } = process.stdout
  process.stdout.write = ((text: string) => lines.push(text) > 0) as typeof write
  try {
    await work()
  } finally {
    process.stdout.write = write
  }
  return lines.filter((line) => line.includes('skipped'))
}

const thrownBy = (work: Promise<unknown>) => work.catch((error: unknown) => error)

test.group('runStateStoreContract', () => {
  test('registers one test a case with the runner it is given, and runs nothing', ({ assert }) => {
    const { runner, tests } = recorder()
    let factories = 0
    const factory = async () => {
      factories += 1
      return made(new InMemoryStateStore())
    }
    runStateStoreContract('mine', factory, { test: runner })
    assert.deepEqual(
      tests.map(({ title }) => title),
      STATE_STORE_CASES.map(({ name }) => `mine: ${name}`)
    )
    assert.equal(factories, 0)
  })

  test('gives every case a store of its own and cleans it up', async ({ assert }) => {
    const { runner, tests } = recorder()
    const opened: StateStore[] = []
    let cleaned = 0
    const factory = async () => {
      const store = new InMemoryStateStore()
      opened.push(store)
      return made(store, { cleanup: async () => void (cleaned += 1) })
    }
    runStateStoreContract('mine', factory, { test: runner })
    for (const { run } of tests.slice(0, 5)) await run()
    assert.equal(new Set(opened).size, 5)
    assert.equal(cleaned, 5)
  })

  test('a case that fails rejects with its own error, after the cleanup', async ({ assert }) => {
    const { runner, tests } = recorder()
    let cleaned = 0
    const factory = async () => {
      const store = new InMemoryStateStore()
      store.getRun = async () => null
      return made(store, {
        cleanup: async () => {
          cleaned += 1
          throw new Error('cleanup failed too')
        },
      })
    }
    runStateStoreContract('mine', factory, { test: runner })
    const error = await thrownBy(titled(tests, 'reads back with its JSON input').run())
    assert.propertyVal(error, 'code', 'ERR_ASSERTION')
    const passing = await thrownBy(titled(tests, 'unknown run id reads null').run())
    assert.propertyVal(passing, 'message', 'cleanup failed too')
    assert.equal(cleaned, 2)
  })

  test('a member that the kit requires must be there; others are not tested', async ({
    assert,
  }) => {
    const { runner, tests } = recorder()
    const factory = async () => made(requiredOnly(new InMemoryStateStore()))
    runStateStoreContract('small', factory, { test: runner })
    const lines = await printed(async () => {
      const error = await thrownBy(titled(tests, 'a count includes both bounds').run())
      assert.match(String(error), /the store has no countCheckpoints, which every store must have/)
      await titled(tests, 'a settled range folds into one row').run()
      await titled(tests, 'an empty range does not fold').run()
    })
    assert.deepEqual(lines, ['  skipped: small: the store has no compactCheckpoints\n'])
  })

  test('a backend that is not there skips with one line, whichever copy says so', async ({
    assert,
  }) => {
    const foreign = Object.assign(new Error('no Postgres at nowhere'), {
      [Symbol.for('@agora/durable:state-store-unavailable')]: true,
    })
    for (const error of [new StateStoreUnavailableError('no Postgres at nowhere'), foreign]) {
      const { runner, tests } = recorder()
      const factory = () => Promise.reject(error)
      runStateStoreContract('far', factory, { test: runner })
      const lines = await printed(async () => {
        for (const { run } of tests) await run()
      })
      assert.deepEqual(lines, ['  skipped: far: no Postgres at nowhere\n'])
    }
  })

  test('any other failure of the factory fails the case', async ({ assert }) => {
    const { runner, tests } = recorder()
    const factory = () => Promise.reject(new Error('bad password'))
    runStateStoreContract('mine', factory, { test: runner })
    assert.match(String(await thrownBy(tests[0].run())), /bad password/)
  })

  test('a driver may declare what it cannot do', async ({ assert }) => {
    const { runner, tests } = recorder()
    const broken = () => {
      const store = new InMemoryStateStore()
      store.transaction = async () => {
        throw new Error('synchronous')
      }
      return store
    }
    const flags = { supportsAsyncTransaction: false, supportsTagFilter: false }
    runStateStoreContract('sync', async () => made(broken(), flags), { test: runner })
    const lines = await printed(async () => {
      await titled(tests, 'a transaction answers its value').run()
      await titled(tests, 'a tag matches an element exactly').run()
    })
    assert.deepEqual(lines, [
      '  skipped: sync: supportsAsyncTransaction is false\n',
      '  skipped: sync: supportsTagFilter is false\n',
    ])
  })

  test('an exception is registered as skipped with its reason', ({ assert }) => {
    const except = { 'an unknown run id reads null': 'it invents one' }
    const factory = async () => made(new InMemoryStateStore())
    const able = recorder()
    runStateStoreContract('odd', factory, { test: able.runner, except })
    const title = 'odd: an unknown run id reads null (skipped: it invents one)'
    assert.deepEqual(able.skipped, [title])
    assert.lengthOf(able.tests, STATE_STORE_CASES.length - 1)
    const plain = recorder(false)
    runStateStoreContract('odd', factory, { test: plain.runner, except })
    assert.lengthOf(plain.tests, STATE_STORE_CASES.length)
    assert.isDefined(titled(plain.tests, title))
  })

  test('an exception for a case that does not exist is refused', ({ assert }) => {
    const { runner } = recorder()
    const register = () =>
      runStateStoreContract('mine', async () => made(new InMemoryStateStore()), {
        test: runner,
        except: { 'no such case': 'because' },
      })
    assert.throws(register, /No case is named "no such case"/)
  })

  test('case names are unique', ({ assert }) => {
    const names = STATE_STORE_CASES.map(({ name }) => name)
    assert.equal(new Set(names).size, names.length)
  })
})

test.group('runAdmissionBackendContract', () => {
  test('a backend alone is shown what one instance does; the rest is left out with its reason', async ({
    assert,
  }) => {
    const { runner, tests } = recorder()
    let closed = 0
    class Backend extends InMemoryAdmissionBackend {
      async close(): Promise<void> {
        closed += 1
      }
    }
    runAdmissionBackendContract('mine', (clock) => new Backend({ clock }), { test: runner })
    const lines = await printed(async () => {
      for (const { run } of tests) await run()
    })
    assert.deepEqual(lines, [
      '  skipped: mine: abilities do not list shared\n',
      '  skipped: mine: abilities do not list shared, leases\n',
    ])
    assert.equal(closed, tests.length)
  })

  test('instances are opened as the case wants them, closed once each, and cleaned up after', async ({
    assert,
  }) => {
    const { runner, tests } = recorder()
    const opened: AdmissionSettings[] = []
    const ends: string[] = []
    const factory = () => ({
      open: (settings: AdmissionSettings) => {
        opened.push(settings)
        const close = async () => void ends.push('closed')
        return Object.assign(new InMemoryAdmissionBackend(), { close })
      },
      abilities: ['shared', 'leases'] as const,
      cleanup: () => void ends.push('cleaned up'),
    })
    runAdmissionBackendContract('mine', factory, { test: runner })
    const closing = titled(tests, 'closing an instance releases nothing before its TTL')
    // Instances that share nothing admit at once.
    const error = await thrownBy(closing.run())
    assert.match(String(error), /the slot was taken after \d+ ms/)
    assert.deepEqual(opened, [{}, { instanceTtlMs: 1_000 }])
    assert.deepEqual(ends, ['closed', 'closed', 'cleaned up'])
  })
})
