/*
 * Step declarations and the references they make.
 */
import { test } from '@japa/runner'
import { z } from 'zod'
import { defineStep, Step } from '../../src/authoring/step.ts'
import {
  mergePolicy,
  stepConfigOf,
  stepNameOf,
  stepSchemasOf,
} from '../../src/authoring/step_ref.ts'
import { InvalidArgumentError } from '../../src/errors.ts'
import {
  DURABLE_STEP_CONFIG,
  DURABLE_STEP_META,
  DURABLE_STEP_NAME,
  type StepDecoratorOptions,
} from '../../src/types/step.ts'

const input = z.object({ amount: z.number() })
const output = z.string()

class PaymentSteps {
  @Step()
  async charge() {}

  @Step('payment:refund')
  async refund() {}

  @Step({ name: 'payment:void', input, output, retries: 3, backoff: 'exp', backoffMs: 100 })
  async void() {}

  @Step({ timeoutMs: 5_000, jitter: undefined, input })
  async settle() {}

  plain() {}
}

const steps = PaymentSteps.prototype

test.group('@Step', () => {
  test('derives the name from class and method, or takes the given one', ({ assert }) => {
    assert.equal(stepNameOf(steps.charge), 'PaymentSteps.charge')
    assert.equal(stepNameOf(steps.refund), 'payment:refund')
    assert.equal(stepNameOf(steps.void), 'payment:void')
    assert.equal(stepNameOf(steps.settle), 'PaymentSteps.settle')
  })

  test('stamps policy and schemas on the method, and nothing that was not declared', ({
    assert,
  }) => {
    assert.deepEqual(stepConfigOf(steps.void), { retries: 3, backoff: 'exp', backoffMs: 100 })
    assert.deepEqual(stepSchemasOf(steps.void), { input, output })
    assert.deepEqual(stepConfigOf(steps.settle), { timeoutMs: 5_000 })
    assert.deepEqual(stepSchemasOf(steps.settle), { input })
    assert.isUndefined(stepConfigOf(steps.charge))
    assert.isUndefined(stepSchemasOf(steps.charge))
    assert.deepEqual(Object.keys(steps.void), [])
  })

  test('is read off an instance as well', ({ assert }) => {
    assert.equal(stepNameOf(new PaymentSteps().charge), 'PaymentSteps.charge')
  })

  test('refuses what is no instance method, no name and no schema', ({ assert }) => {
    const declare = [
      () => {
        class Static {
          @Step()
          static run() {}
        }
        return Static
      },
      () => {
        class Getter {
          @Step()
          get value() {
            return 1
          }
        }
        return Getter
      },
      () => Step()(function modern() {} as never, 'run', undefined as never),
      () => {
        class Empty {
          @Step('')
          run() {}
        }
        return Empty
      },
      () => {
        class Long {
          @Step('x'.repeat(513))
          run() {}
        }
        return Long
      },
      () => {
        class Schema {
          @Step({ input: { type: 'object' } } as unknown as StepDecoratorOptions)
          run() {}
        }
        return Schema
      },
    ]
    for (const make of declare) assert.throws(make, InvalidArgumentError)
  })
})

test.group('defineStep', () => {
  test('stamps a function that runs the handler', async ({ assert }) => {
    const handler = (value: { amount: number }) => String(value.amount)
    const one = defineStep('one', handler, { retries: 2, requires: ['gpu'], input, output })
    const two = defineStep('two', handler)
    assert.deepEqual([stepNameOf(one), stepNameOf(two)], ['one', 'two'])
    assert.deepEqual(stepConfigOf(one), { retries: 2, requires: ['gpu'] })
    assert.isUndefined(stepConfigOf(two))
    assert.deepEqual(stepSchemasOf(one), { input, output })
    assert.isUndefined(stepNameOf(handler))
    assert.equal(await one({ amount: 3 }), '3')
  })

  test('refuses an unusable name and a value that is no schema', ({ assert }) => {
    for (const name of ['', 'a\nb', 'x'.repeat(600), 7 as unknown as string]) {
      assert.throws(() => defineStep(name, () => 1), InvalidArgumentError)
    }
    const wrong = { output: { parse: () => 1 } } as unknown as { output: typeof output }
    assert.throws(
      () => defineStep('x', () => 'a', wrong),
      /the output schema of step "x" is not a Standard Schema/
    )
  })
})

test.group('Step references', () => {
  test('anything else is no reference', ({ assert }) => {
    for (const value of [steps.plain, () => 1, undefined, null, 'name', 7, {}, []]) {
      assert.isUndefined(stepNameOf(value))
      assert.isUndefined(stepConfigOf(value))
      assert.isUndefined(stepSchemasOf(value))
    }
    assert.isUndefined(stepNameOf(Object.assign(() => 1, { [DURABLE_STEP_NAME]: 7 })))
  })

  test('the stamps are registry symbols, shared by all copies of the package', async ({
    assert,
  }) => {
    assert.equal(DURABLE_STEP_NAME, Symbol.for('@agora/durable:step-name'))
    assert.equal(DURABLE_STEP_CONFIG, Symbol.for('@agora/durable:step-config'))
    assert.equal(DURABLE_STEP_META, Symbol.for('@agora/durable:step-meta'))
    const copy = '../../src/authoring/step_ref.ts?copy=refs'
    const other = (await import(copy)) as { stepNameOf: typeof stepNameOf }
    assert.notStrictEqual(other.stepNameOf, stepNameOf)
    assert.equal(other.stepNameOf(steps.charge), 'PaymentSteps.charge')
  })

  test('options of a call override the declared policy field by field', ({ assert }) => {
    const declared = { retries: 3, backoffMs: 100, timeoutMs: 1_000 }
    assert.deepEqual(
      mergePolicy(declared, { retries: 5, timeoutMs: undefined, queue: 'slow', priority: 0 }),
      { retries: 5, backoffMs: 100, timeoutMs: 1_000, queue: 'slow', priority: 0 }
    )
    assert.deepEqual(mergePolicy(undefined, undefined), {})
    assert.deepEqual(mergePolicy(declared, undefined), declared)
    assert.deepEqual(declared, { retries: 3, backoffMs: 100, timeoutMs: 1_000 })
  })
})
