import { test } from '@japa/runner'
import { defineConfig, stores, WorkflowEngine } from '../../index.ts'
import { bootApp, PACKAGE } from './app.ts'

const ORDER = `
import { inject } from '@adonisjs/core'
import { BaseWorkflow } from '${PACKAGE}'

export default class OrderWorkflow extends BaseWorkflow {
  static workflow = { name: 'order' }
  async run(ctx, input) {
    return ctx.step('price', input)
  }
}
`
const PRICE = `
import { defineStep } from '${PACKAGE}'
export const price = defineStep('price', async (input) => input.amount * 2)
`

test.group('Provider', () => {
  test('boots', async ({ assert }) => {
    const app = await bootApp({
      lucid: true,
      durable: defineConfig({ store: 'lucid', stores: { lucid: stores.lucid() } }),
      files: { 'app/workflows/order.ts': ORDER, 'app/steps/price.ts': PRICE },
    })
    const engine = await app.container.make(WorkflowEngine)
    await engine.start('order', { amount: 21 }, 'r1')
    const result = await engine.waitForRun('r1', { terminal: true, timeoutMs: 5000 })
    assert.deepEqual(result, { runId: 'r1', status: 'completed', output: 42 })
  })
})
