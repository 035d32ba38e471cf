/*
 * The class decorators of workflows: what they stamp and what they refuse.
 */
import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import { OnDiagnostic, OnEvent } from '../../src/authoring/decorators.ts'
import { workflowMeta } from '../../src/authoring/workflow_ref.ts'
import { InvalidArgumentError } from '../../src/errors.ts'
import type { DiagnosticsTriggerConfig, EmitterTriggerConfig } from '../../src/types/workflow.ts'

const PATTERN = /^job\./

@OnEvent({ event: 'order:paid' })
@OnDiagnostic({ lib: 'queue', event: PATTERN })
@OnEvent({ event: 'order:refunded' })
class Decorated extends BaseWorkflow {
  static workflow = { name: 'decorated' }
  async run() {}
}

const ALL = [{ event: 'order:paid' }, { lib: 'queue', event: PATTERN }, { event: 'order:refunded' }]

test.group('Decorators | triggers', () => {
  test('stamp static on, in source order', ({ assert }) => {
    assert.deepEqual(Decorated.on, ALL)
    assert.deepEqual(workflowMeta(Decorated)?.on, ALL)
  })

  test('a class without triggers has none in its metadata', ({ assert }) => {
    class Plain extends BaseWorkflow {
      static workflow = { name: 'plain' }
      async run() {}
    }
    assert.deepEqual(workflowMeta(Plain), { name: 'plain', version: '1' })
  })

  test('add to the triggers that the class writes itself, one or several', ({ assert }) => {
    @OnEvent({ event: 'first' })
    class Both extends BaseWorkflow {
      static workflow = { name: 'both' }
      static on = { event: 'second' }
      async run() {}
    }
    assert.deepEqual(workflowMeta(Both)?.on, [{ event: 'first' }, { event: 'second' }])
    class Written extends BaseWorkflow {
      static workflow = { name: 'written' }
      static on = [{ event: 'a' }, { lib: 'b' }]
      async run() {}
    }
    assert.deepEqual(workflowMeta(Written)?.on, [{ event: 'a' }, { lib: 'b' }])
  })

  test('a subclass inherits them, and its own never reach the base class', ({ assert }) => {
    class Inheriting extends Decorated {}
    assert.deepEqual(workflowMeta(Inheriting)?.on, ALL)
    @OnEvent({ event: 'other' })
    class Own extends Decorated {}
    assert.deepEqual(workflowMeta(Own)?.on, [{ event: 'other' }])
    assert.deepEqual(Decorated.on, ALL)
  })

  const refused: [title: string, decorate: () => unknown, message: RegExp][] = [
    ['an event without a name', () => OnEvent({ event: '' }), /needs the name of an event/],
    ['no event', () => OnEvent({} as EmitterTriggerConfig), /needs the name of an event/],
    ['no library', () => OnDiagnostic({} as DiagnosticsTriggerConfig), /the name of a library/],
    [
      'an event that is neither name nor pattern',
      () => OnDiagnostic({ lib: 'queue', event: 7 as never }),
      /takes the name of an event or a pattern/,
    ],
    [
      'every event of this package',
      () => OnDiagnostic({ lib: 'durable' }),
      /needs an event for library "durable"/,
    ],
  ]
  for (const [title, decorate, message] of refused) {
    test(`refuse ${title}`, ({ assert }) => {
      assert.throws(decorate, message)
      assert.throws(decorate, InvalidArgumentError)
    })
  }

  test('a written static on is held to the same', ({ assert }) => {
    for (const on of [{ event: '' }, [{ lib: 'durable' }], 'order:paid']) {
      class Wrong extends BaseWorkflow {
        static workflow = { name: 'wrong' }
        static on = on as never
        async run() {}
      }
      assert.throws(() => workflowMeta(Wrong), /static on of Wrong/)
    }
  })

  test('are typed', ({ expectTypeOf }) => {
    expectTypeOf(OnEvent).parameters.toEqualTypeOf<[EmitterTriggerConfig]>()
    expectTypeOf(OnEvent).returns.toEqualTypeOf<ClassDecorator>()
    expectTypeOf(OnDiagnostic).parameters.toEqualTypeOf<[DiagnosticsTriggerConfig]>()
    expectTypeOf<DiagnosticsTriggerConfig>().toEqualTypeOf<{
      lib: string
      event?: string | RegExp
    }>()
  })
})
