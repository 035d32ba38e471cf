/*
 * References to workflows: names, metadata, and the options that registration takes.
 */
import { test } from '@japa/runner'
import * as v from 'valibot'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import { registerOptionsOf, workflowMeta, workflowName } from '../../src/authoring/workflow_ref.ts'
import { FatalError, InvalidArgumentError, SchemaValidationError } from '../../src/errors.ts'
import type { WorkflowMeta, WorkflowRef } from '../../src/types/workflow.ts'

class Order extends BaseWorkflow {
  static override workflow = { name: 'order', version: '2', tags: ['shop'] }

  async run() {}
}

class Plain {
  static workflow = { name: 'plain' }

  async run() {}
}

class Nameless extends BaseWorkflow {
  run() {}
}

const unusable = [
  Nameless,
  undefined,
  null,
  7,
  {},
  () => 1,
  { workflow: { name: 'object' } },
  class {
    static workflow = { name: '' }
  },
  class {
    static workflow = 'text'
  },
] as unknown as WorkflowRef[]

test.group('workflowName', () => {
  test('is the name itself or the declared one', ({ assert }) => {
    assert.equal(workflowName('by-name'), 'by-name')
    assert.equal(workflowName(Order), 'order')
    assert.equal(workflowName(Plain), 'plain')
  })

  test('throws for a class without static workflow, naming it', ({ assert }) => {
    for (const ref of unusable) assert.throws(() => workflowName(ref), InvalidArgumentError)
    assert.throws(() => workflowName(Nameless), /Nameless has no `static workflow = \{ name \}`/)
    assert.throws(() => workflowName(undefined as never), /two modules import each other/)
  })
})

test.group('workflowMeta', () => {
  test('reads static workflow and fills in the version', ({ assert }) => {
    assert.deepEqual(workflowMeta(Order), { name: 'order', version: '2', tags: ['shop'] })
    assert.deepEqual(workflowMeta(Plain), { name: 'plain', version: '1' })
    assert.deepEqual(Plain.workflow, { name: 'plain' })
  })

  test('a number given as version becomes text', ({ assert }) => {
    const target = class {
      static workflow = { name: 'x', version: 3 }
    }
    assert.equal(workflowMeta(target)?.version, '3')
  })

  test('is undefined for everything else', ({ assert }) => {
    for (const target of [...unusable, 'order']) assert.isUndefined(workflowMeta(target))
    const hostile = class {
      static get workflow(): never {
        throw new Error('not readable')
      }
    }
    assert.isUndefined(workflowMeta(hostile))
  })
})

test.group('registerOptionsOf', () => {
  const of = (options: Partial<WorkflowMeta>) =>
    registerOptionsOf({ name: 'w', version: '1', ...options })

  test('keeps what is declared and leaves out what is not', ({ assert }) => {
    assert.deepEqual(of({}), {})
    const schema = v.object({ region: v.string() })
    assert.deepEqual(of({ tags: [], searchAttributes: schema, file: 'x.ts' }), {
      tags: [],
      searchAttributesSchema: schema,
    })
  })

  test('resolves every reference to a name', ({ assert }) => {
    const options = of({
      onError: [
        { code: 'declined', workflow: Order },
        { code: SchemaValidationError, workflow: Plain },
        { workflow: 'other' },
      ],
      deadLetterWorkflow: Plain,
    })
    assert.deepEqual(options, {
      onError: [
        { code: 'declined', workflow: 'order' },
        { code: 'schema_validation', workflow: 'plain' },
        { workflow: 'other' },
      ],
      deadLetterWorkflow: 'plain',
    })
  })

  test('refuses references without a name, codes that are none and values that are no schema', ({
    assert,
  }) => {
    const codeless = class extends Error {} as unknown as { code: string }
    for (const options of [
      { deadLetterWorkflow: Nameless },
      { onError: [{ workflow: undefined as never }] },
      { onError: [{ code: codeless, workflow: Order }] },
      { onError: [{ code: null as never, workflow: Order }] },
      { inputSchema: { parse() {} } as never },
      { searchAttributes: 'text' as never },
    ]) {
      assert.throws(() => of(options), InvalidArgumentError)
    }
    assert.doesNotThrow(() => of({ onError: [{ code: FatalError, workflow: Order }] }))
  })
})
