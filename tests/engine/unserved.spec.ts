/*
 * A step name that nobody serves: the run waits, and the log says why, once.
 */
import { test } from '@japa/runner'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { EventEmitterTransport } from '../../src/transport/event_emitter/event_emitter_transport.ts'

test.group('Unserved steps', () => {
  test('are named once over the event emitter, and run once somebody serves them', async ({
    assert,
    cleanup,
  }) => {
    const warnings: string[] = []
    const transport = new EventEmitterTransport()
    cleanup(() => transport.close())
    const engine = new WorkflowEngine({
      store: new InMemoryStateStore(),
      transport,
      logger: { warn: (message) => void warnings.push(message), error: () => {} },
    })
    engine.handle('charge', () => 'charged')
    engine.register('misspelt', '1', async (ctx) => ctx.step('chrage', 1))
    engine.register('right', '1', async (ctx) => ctx.step('charge', 1))
    for (const id of ['a', 'b']) {
      await engine.start('misspelt', null, id)
      assert.deepInclude(await engine.waitForRun(id), { status: 'suspended' })
    }
    await engine.start('right', null, 'r')
    assert.deepInclude(await engine.waitForRun('r', { terminal: true }), { output: 'charged' })
    assert.lengthOf(warnings, 1)
    assert.match(warnings[0], /step "chrage" of run a was sent, and nobody in this process serves/)
    engine.handle('chrage', () => 'served after all')
    await engine.redispatchPending('a')
    assert.deepInclude(await engine.waitForRun('a', { terminal: true }), {
      output: 'served after all',
    })
    assert.lengthOf(warnings, 1)
  })
})
