/*
 * Run ids, step names and queue names that a broker could trip over: a run whose steps go over a real
 * broker ends as one with plain names does.
 */
import { getActiveTestOrFail, test } from '@japa/runner'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import { BROKERS, type Broker, openBroker } from '../transport/brokers.ts'

const NAMES = [
  'order:1:2',
  '0012345',
  ' a b  ',
  'größe/☕ 👍',
  '100%_*?[x]{y}',
  `o'brien"\\`,
  '__proto__',
  '--;DROP/*x*/#',
  '.',
]

async function partsOf(broker: Broker | 'memory') {
  if (broker === 'memory') {
    return { store: new InMemoryStateStore(), transport: new InMemoryTransport() }
  }
  const { store, open } = await openBroker(broker)
  return { store, transport: await open('engine') }
}

test.group('Awkward tasks', (group) => {
  group.each.timeout(120_000)

  test('over {$self}: every name is carried, and none is taken for another')
    .with([...BROKERS, 'memory'] as const)
    .run(async ({ assert }, broker) => {
      const { store, transport } = await partsOf(broker)
      const engine = new WorkflowEngine({ store, transport })
      getActiveTestOrFail().cleanup(() => engine.drain(5000))
      for (const name of NAMES) engine.handle(name, (input) => `${name} <- ${String(input)}`)
      engine.register('w', '1', async (ctx, name: string) => {
        const step = await ctx.step(name, ctx.runId)
        const child = await ctx.child('kid', name, { childId: `${ctx.runId}:kid` })
        return { step, child, word: await ctx.waitForSignal(name) }
      })
      engine.register('kid', '1', (ctx, name: string) => ctx.step(name, ctx.runId))
      for (const name of NAMES) {
        await engine.start('w', name, name)
        await engine.signal(name, `word of ${name}`)
      }
      for (const name of NAMES) {
        const { output, error } = await engine.waitForRun(name, {
          terminal: true,
          timeoutMs: 60_000,
        })
        assert.isUndefined(error, name)
        assert.deepEqual(output, {
          step: `${name} <- ${name}`,
          child: `${name} <- ${name}:kid`,
          word: `word of ${name}`,
        })
      }
    })
    .tags(['@scenario-10'])
})
