/*
 * Concurrency quotas: a start over the limit is refused and leaves nothing; nothing waits for a place.
 */
import { test } from '@japa/runner'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { ConcurrencyLimitError, InvalidArgumentError } from '../../src/errors.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import type { ConcurrencyConfig } from '../../src/types/workflow.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const key = (input: unknown) => (input as { tenant?: string }).tenant

for (const kind of await storesUnderTest()) {
  test.group(`Quotas | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    function engineWith(concurrency: ConcurrencyConfig) {
      const engine = world.engine()
      for (const name of ['one', 'other']) {
        engine.register(name, '1', (ctx) => ctx.waitForSignal(`end:${ctx.runId}`), { concurrency })
      }
      return engine
    }

    test('a key is shared across workflows; an ended run makes room', async ({ assert }) => {
      const engine = engineWith({ key, limit: 2 })
      await engine.start('one', { tenant: 'a' }, 'r1')
      await engine.start('other', { tenant: 'a' }, 'r2')
      await engine.start('one', { tenant: 'b' }, 'r3')
      await engine.start('one', {}, 'free')
      await world.quiet()
      const refused = await engine.start('one', { tenant: 'a' }, 'r4').catch((e: unknown) => e)
      assert.instanceOf(refused, ConcurrencyLimitError)
      assert.deepInclude(refused, { workflow: 'one', key: 'a', limit: 2, active: 2 })
      assert.isNull(await engine.getRun('r4'))
      assert.deepInclude(await engine.start('one', { tenant: 'a' }, 'r1'), { runId: 'r1' })
      await engine.signal('end:r2', null)
      await world.quiet()
      await engine.start('one', { tenant: 'a' }, 'r4')
      await world.parked('r4')
    })

    test('a limit may be asked for, and a start may bring its own', async ({ assert }) => {
      const asked: string[] = []
      const engine = engineWith({
        key,
        limit: async (tenant) => {
          asked.push(tenant)
          return tenant === 'big' ? 2 : 0
        },
      })
      await engine.start('one', { tenant: 'big' }, 'r1')
      await assert.rejects(
        () => engine.start('one', { tenant: 'small' }, 'r2'),
        'workflow one: 0 runs in flight for "small", the limit is 0'
      )
      assert.deepEqual(asked, ['big', 'small'])
      const concurrency = { key: 'mine', limit: 1 }
      await engine.start('one', { tenant: 'small' }, 'r3', { concurrency })
      await assert.rejects(() => engine.start('other', {}, 'r4', { concurrency }), /"mine"/)
      assert.lengthOf(asked, 2)
    })

    test('what counts may be chosen', async ({ assert }) => {
      const engine = engineWith({ key, limit: 1, countStatuses: ['completed'] })
      for (const id of ['r1', 'r2']) await engine.start('one', { tenant: 'a' }, id)
      await world.quiet()
      await engine.signal('end:r1', null)
      await world.quiet()
      await assert.rejects(() => engine.start('one', { tenant: 'a' }, 'r3'), /limit is 1/)
    })

    test('a child over the limit is a failed child', async ({ assert }) => {
      const engine = engineWith({ key, limit: 0 })
      engine.register('parent', '1', (ctx) =>
        ctx.child('one', { tenant: 'a' }).catch((error: { code?: string }) => error.code)
      )
      await engine.start('parent', null, 'p')
      assert.equal(await world.output('p'), 'concurrency_limit')
    })
  })
}

test.group('Quotas and singletons | what cannot be registered', () => {
  test('each says what is wrong, and nothing is registered', async ({ assert }) => {
    const engine = new WorkflowEngine({ store: new InMemoryStateStore() })
    const wrong: [object, RegExp][] = [
      [{ singleton: {} }, /singleton of workflow "w" needs key/],
      [{ singleton: { key: 'k' } }, /needs key: \(input\) => string/],
      [{ singleton: { key, limit: 0 } }, /limit must be a whole number of at least 1/],
      [{ singleton: { key, maxQueueDepth: -1 } }, /maxQueueDepth must be a whole number/],
      [{ concurrency: { limit: 1 } }, /concurrency of workflow "w" needs a key/],
      [{ concurrency: { key, limit: 1.5 } }, /limit must be a whole number/],
      [{ concurrency: { key, limit: 1, countStatuses: ['gone'] } }, /knows no "gone"/],
      [{ concurrency: { key, limit: 1, countStatuses: 'failed' } }, /countStatuses must be a list/],
      [{ tags: 'eu' }, /tags of workflow "w" must be a list/],
    ]
    for (const [options, message] of wrong) {
      assert.throws(() => engine.register('w', '1', async () => {}, options), message)
    }
    await assert.rejects(() => engine.start('w', null, 'r'), /not registered/)
    engine.register('w', '1', async () => {})
    const text = { tags: 'eu' as never }
    await assert.rejects(() => engine.start('w', null, 'r', text), /start: tags must be a list/)
    engine.register('w', '1', async () => {}, { singleton: { key: () => 7 as never } })
    const refused = await engine.start('w', null, 'r').catch((error: unknown) => error)
    assert.instanceOf(refused, InvalidArgumentError)
    assert.isNull(await engine.getRun('r'))
  })
})
