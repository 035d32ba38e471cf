/*
 * Schemas of several libraries at run time: the check itself, and around a served handler.
 */
import { test } from '@japa/runner'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import {
  getCurrentWorkflowCtx,
  runInStepBody,
  runInWorkflowScope,
} from '../../src/authoring/ambient.ts'
import { servedHandler } from '../../src/authoring/served_handler.ts'
import { validateStandard } from '../../src/authoring/validate_standard.ts'
import { SchemaValidationError } from '../../src/errors.ts'
import type { StandardSchemaV1 } from '../../src/foundation/standard_schema.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { StepLogger } from '../../src/types/step.ts'
import { failureOf } from './tree.ts'

/** The same schema in three libraries: text of a number in, the number out. */
const libraries: Record<string, StandardSchemaV1<unknown, { lines: { amount: number }[] }>> = {
  zod: z.object({
    lines: z.array(z.object({ amount: z.string().regex(/^\d+$/).transform(Number) })),
  }),
  valibot: v.object({
    lines: v.array(v.object({ amount: v.pipe(v.string(), v.regex(/^\d+$/), v.transform(Number)) })),
  }),
  arktype: type({ lines: type({ amount: 'string.integer.parse' }).array() }),
}

const log = {} as StepLogger

for (const [library, schema] of Object.entries(libraries)) {
  test.group(`Schemas | ${library}`, () => {
    test('answers the output of the schema', async ({ assert }) => {
      const value = await validateStandard(schema, { lines: [{ amount: '12' }] }, 'the order')
      assert.deepEqual(value, { lines: [{ amount: 12 }] })
    })

    test('an invalid value fails for good, with issues as plain data', async ({ assert }) => {
      const value = { lines: [{ amount: '1' }, { amount: 'x' }] }
      const failure = await failureOf(validateStandard(schema, value, 'the order'))
      assert.instanceOf(failure, SchemaValidationError)
      assert.equal(failure.code, 'schema_validation')
      assert.isFalse(failure.retryable)
      assert.match(failure.message, /^the order is invalid: lines\.1\.amount: /)
      const { issues } = failure as unknown as SchemaValidationError
      assert.lengthOf(issues, 1)
      assert.deepEqual(issues[0].path, ['lines', '1', 'amount'])
      assert.isString(issues[0].message)
      assert.deepEqual(failure.details, { issues })
      assert.deepEqual(JSON.parse(JSON.stringify(issues)), issues)
    })

    test('guards a served handler on both sides', async ({ assert }) => {
      const given: unknown[] = []
      const handler = servedHandler(
        'sum',
        (input: { lines: { amount: number }[] }) => {
          given.push(input)
          return { lines: [{ amount: input.lines[0].amount === 1 ? '7' : 'no number' }] }
        },
        { input: schema, output: schema }
      )
      assert.deepEqual(await handler({ lines: [{ amount: '1' }] }, log), { lines: [{ amount: 7 }] })
      assert.deepEqual(given, [{ lines: [{ amount: 1 }] }])

      const badInput = await failureOf(async () => handler({ lines: 'none' }, log))
      assert.instanceOf(badInput, SchemaValidationError)
      assert.equal(badInput.code, 'invalid_input')
      assert.include(badInput.message, 'the input of step "sum"')
      assert.lengthOf(given, 1)

      const badOutput = await failureOf(async () => handler({ lines: [{ amount: '2' }] }, log))
      assert.equal(badOutput.code, 'invalid_output')
      assert.isFalse(badOutput.retryable)
      assert.include(badOutput.message, 'the output of step "sum"')
    })
  })
}

test.group('validateStandard', () => {
  test('waits for an asynchronous schema', async ({ assert }) => {
    const schema = z.string().refine(async (text) => text === 'known')
    assert.equal(await validateStandard(schema, 'known', 'the name'), 'known')
    const failure = await failureOf(validateStandard(schema, 'other', 'the name', 'invalid_input'))
    assert.equal(failure.code, 'invalid_input')
  })

  test('flattens path segments that are objects', async ({ assert }) => {
    const schema: StandardSchemaV1 = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: () => ({ issues: [{ message: 'bad', path: [{ key: 'a' }, 0, Symbol('s')] }] }),
      },
    }
    const failure = await failureOf(validateStandard(schema, 1, 'it'))
    assert.deepEqual((failure as unknown as SchemaValidationError).issues, [
      { message: 'bad', path: ['a', '0', 'Symbol(s)'] },
    ])
  })

  test('passes on what the schema itself throws', async ({ assert }) => {
    const schema = z.string().transform(() => {
      throw new RangeError('defect')
    })
    assert.instanceOf(await failureOf(validateStandard(schema, 'x', 'it')), RangeError)
  })
})

test.group('Served handler', () => {
  test('without schemas input and output pass through', async ({ assert }) => {
    const handler = servedHandler('echo', (input: unknown, logger) => ({ input, logger }))
    assert.deepEqual(await handler(undefined, log), { input: undefined, logger: log })
  })

  test('a handler that throws, at once or later, rejects with its own error', async ({
    assert,
  }) => {
    const error = new Error('declined')
    const sync = servedHandler('sync', () => {
      throw error
    })
    const later = servedHandler('later', async () => {
      throw error
    })
    assert.strictEqual(await failureOf(async () => sync(1, log)), error)
    assert.strictEqual(await failureOf(async () => later(1, log)), error)
  })

  test('no workflow is ambient in it', async ({ assert }) => {
    const handler = servedHandler('step', async () => {
      await null
      return getCurrentWorkflowCtx() ?? 'none'
    })
    const ctx = { runId: 'r' } as WorkflowCtx
    const answer = await runInWorkflowScope(ctx, () =>
      runInStepBody({ runId: 'r', step: 's' }, () => handler(1, log))
    )
    assert.equal(answer, 'none')
  })
})
