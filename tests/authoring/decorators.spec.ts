/*
 * The class decorators of workflows: what they stamp and what they refuse.
 */
import { test } from '@japa/runner'
import { BaseWorkflow } from '../../src/authoring/base_workflow.ts'
import { OnDiagnostic, OnEvent, Scheduled } from '../../src/authoring/decorators.ts'
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

test.group('Decorators | schedules', () => {
  const [nightly, hourly, often] = [
    { key: 'nightly', cron: '0 2 * * *' },
    { key: 'hourly', everyMs: 3_600_000 },
    { key: 'often', everyMs: 1000 },
  ]

  test('stamp static schedule, in source order, before what the class writes itself', ({
    assert,
  }) => {
    @Scheduled(nightly)
    @Scheduled([hourly])
    class Report extends BaseWorkflow {
      static workflow = { name: 'report' }
      static schedule = often
      async run() {}
    }
    assert.deepEqual(workflowMeta(Report)?.schedules, [nightly, hourly, often])
  })

  test('do not leak onto a base class', ({ assert }) => {
    @Scheduled(nightly)
    class Base extends BaseWorkflow {
      static workflow = { name: 'base' }
      async run() {}
    }
    @Scheduled(hourly)
    class Derived extends Base {
      static workflow = { name: 'derived' }
    }
    assert.deepEqual(workflowMeta(Base)?.schedules, [nightly])
    assert.deepEqual(workflowMeta(Derived)?.schedules, [hourly])
  })

  test('what is no schedule is refused', ({ assert }) => {
    for (const wrong of [undefined, null, '0 2 * * *', []]) {
      assert.throws(() => Scheduled(wrong as never), /^@Scheduled needs a schedule/)
    }
    class Wrong extends BaseWorkflow {
      static workflow = { name: 'wrong' }
      static schedule = 'hourly' as never
      async run() {}
    }
    assert.throws(() => workflowMeta(Wrong), /^static schedule of Wrong must hold schedules/)
  })
})
