import { test } from '@japa/runner'
import { fullStore, InMemoryStateStore, type StateStore } from '../../index.ts'
import { withDeferredSchema } from '../../src/adonis/deferred_schema.ts'

function storeWithSchema(provision: () => Promise<void>): StateStore {
  return Object.assign(new InMemoryStateStore(), { ensureSchema: provision })
}

test.group('Deferred schema', () => {
  test('the first call provisions, the others do not, and concurrent ones wait', async ({
    assert,
  }) => {
    const order: string[] = []
    const store = withDeferredSchema(
      storeWithSchema(async () => {
        order.push('begins')
        await new Promise((resolve) => setImmediate(resolve))
        order.push('ends')
      })
    )
    assert.deepEqual(order, [])
    await Promise.all([
      store.getRun('a').then(() => order.push('read')),
      store.listRuns({}).then(() => order.push('read')),
    ])
    await store.getRun('b')
    assert.deepEqual(order, ['begins', 'ends', 'read', 'read'])
  })

  test('a provisioning that failed is tried again by the next call', async ({ assert }) => {
    let attempts = 0
    const store = withDeferredSchema(
      storeWithSchema(async () => {
        attempts++
        if (attempts === 1) throw new Error('database is down')
      })
    )
    await assert.rejects(() => store.getRun('a'), 'database is down')
    assert.isNull(await store.getRun('a'))
    assert.equal(attempts, 2)
  })

  test('closing and scoping provision nothing; what a scoped view reads does', async ({
    assert,
  }) => {
    let attempts = 0
    const store = withDeferredSchema(storeWithSchema(async () => void attempts++))
    const view = store.withScope!({ namespace: 'eu' })
    await store.close!()
    assert.equal(attempts, 0)
    assert.deepEqual(await view.listRuns({}), [])
    assert.equal(attempts, 1)
  })

  test('has the capabilities of its store, and is no store of more', async ({ assert }) => {
    const bare = storeWithSchema(async () => {})
    assert.deepEqual(
      fullStore(withDeferredSchema(bare)).capabilities,
      fullStore(new InMemoryStateStore()).capabilities
    )
    const lesser = Object.assign(
      storeWithSchema(async () => {}),
      { transaction: undefined }
    )
    const { capabilities } = fullStore(withDeferredSchema(lesser))
    assert.isFalse(capabilities.transaction)
    assert.isTrue(capabilities.commitTurn)
  })

  test('a store without a schema is called at once', async ({ assert }) => {
    assert.isNull(await withDeferredSchema(new InMemoryStateStore()).getRun('a'))
  })
})
