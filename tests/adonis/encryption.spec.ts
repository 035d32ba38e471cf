/*
 * The example of the documentation in a real application: the factory of the Lucid store, wrapped.
 */
import { test } from '@japa/runner'
import { CodecStateStore, defineConfig, stores, WorkflowEngine } from '../../index.ts'
import { aesCodec } from '../helpers/codecs.ts'
import { PACKAGE, startApp } from './app.ts'

const FILES = {
  'app/workflows/order.ts': `
    import { BaseWorkflow } from '${PACKAGE}'
    export default class OrderWorkflow extends BaseWorkflow {
      static workflow = { name: 'order' }
      async run(ctx, input) {
        const { card } = input
        return ctx.step('charge', { card })
      }
    }`,
  'app/steps/charge.ts': `
    import { defineStep } from '${PACKAGE}'
    export const charge = defineStep('charge', async ({ card }) => ({ charged: card }))`,
}

test('encryption: an application keeps its payloads unreadable for its database', async ({
  assert,
}) => {
  const codec = aesCodec()
  const durable = defineConfig({
    store: 'encrypted',
    stores: {
      encrypted: async (ctx) => new CodecStateStore(await stores.lucid()(ctx), codec),
    },
  })
  const app = await startApp({ lucid: true, durable, files: FILES })
  const engine = await app.container.make(WorkflowEngine)
  await engine.start('order', { card: '4242424242' }, 'r')
  const result = await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
  assert.deepEqual(result.output, { charged: '4242424242' })
  const db = await app.container.make('lucid.db')
  const runs = await db.from('durable_workflow_runs')
  const rows = await db.from('durable_step_checkpoints')
  assert.deepEqual([runs.length, rows.length], [1, 1])
  assert.deepInclude(runs[0], { id: 'r', workflow: 'order', status: 'completed' })
  assert.notInclude(JSON.stringify([runs, rows]), '4242424242')
})
