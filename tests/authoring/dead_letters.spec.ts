/*
 * Dead-letter methods of workflow classes: what they are registered as.
 */
import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import {
  registerWorkflowClass,
  registerWorkflowsFromDir,
} from '../../src/authoring/discover_workflows.ts'
import { InvalidArgumentError } from '../../src/errors.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { DeadLetter } from '../../src/types/workflow.ts'
import { failureOf, Registrations, tree, workflowModule } from './tree.ts'

const letter: DeadLetter = { deadRunId: 'r', workflow: 'order', input: { id: 1 } }

class Order extends BaseWorkflow {
  static override workflow = { name: 'order', version: '3', origin: '@acme/orders', tags: ['a'] }
  readonly prefix = 'dead'

  async run() {}

  override async deadLetter(_ctx: WorkflowCtx, dead: DeadLetter<{ id: number }>) {
    return `${this.prefix} ${dead.deadRunId} ${dead.input.id}`
  }
}

test.group('Discovery | dead-letter methods', () => {
  test('one is registered under its own name, with version and origin, on the same instance', async ({
    assert,
  }) => {
    const engine = new Registrations()
    await registerWorkflowClass(engine, Order)
    assert.deepEqual(engine.names, ['order@3', 'order.dlq@3'])
    assert.deepEqual(engine.calls[1].options, { origin: '@acme/orders' })
    assert.equal(await engine.calls[1].fn(undefined as never, letter), 'dead r 1')
  })

  test('a class without one registers itself alone', async ({ assert }) => {
    class Plain extends BaseWorkflow {
      static override workflow = { name: 'plain' }
      async run() {}
    }
    const engine = new Registrations()
    await registerWorkflowClass(engine, Plain)
    assert.deepEqual(engine.names, ['plain@1'])
  })

  test('a method and a named handler exclude each other', async ({ assert }) => {
    class Both extends Order {
      static override workflow = { ...Order.workflow, deadLetterWorkflow: 'bury' }
    }
    const engine = new Registrations()
    const error = await failureOf(registerWorkflowClass(engine, Both))
    assert.instanceOf(error, InvalidArgumentError)
    assert.match(error.message, /"order" has a deadLetter\(\) method and a deadLetterWorkflow/)
    assert.deepEqual(engine.names, [])
  })

  test('another class must not have the name of the handler', async ({ assert }) => {
    const root = await tree({
      'order_workflow.ts': workflowModule(
        `{ name: 'order' }`,
        `export class Own extends BaseWorkflow { static workflow = { name: 'own' }\n run() {}\n deadLetter() {} }\n` +
          `export class Taken extends BaseWorkflow { static workflow = { name: 'own.dlq' }\n run() {} }\n`
      ),
    })
    const engine = new Registrations()
    const error = await failureOf(registerWorkflowsFromDir(engine, root))
    assert.match(
      error.message,
      /"own" has a deadLetter\(\) method, which is registered as "own.dlq"/
    )
    assert.deepEqual(engine.names, [])
  })
})
