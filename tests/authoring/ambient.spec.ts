/*
 * The ambient scopes: what is visible where, on which path, and across copies of the package.
 */
import { setImmediate } from 'node:timers/promises'
import { test } from '@japa/runner'
import * as ambient from '../../src/authoring/ambient.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'

const { currentStepBody, getCurrentWorkflowCtx, runInStepBody, runInWorkflowScope } = ambient
const ctxOf = (runId: string) => ({ runId }) as WorkflowCtx

test.group('Ambient scopes', () => {
  test('nothing is ambient outside', ({ assert }) => {
    assert.isUndefined(getCurrentWorkflowCtx())
    assert.isUndefined(currentStepBody())
  })

  test('a body finds its own ctx on every async path, and only there', async ({ assert }) => {
    const body = async () => {
      const seen = [getCurrentWorkflowCtx()?.runId]
      await setImmediate()
      seen.push(getCurrentWorkflowCtx()?.runId)
      await Promise.all([
        setImmediate().then(() => seen.push(getCurrentWorkflowCtx()?.runId)),
        (async () => seen.push(getCurrentWorkflowCtx()?.runId))(),
      ])
      return seen
    }
    const [a, b] = await Promise.all([
      runInWorkflowScope(ctxOf('a'), () => body()),
      runInWorkflowScope(ctxOf('b'), () => body()),
    ])
    assert.deepEqual(a, ['a', 'a', 'a', 'a'])
    assert.deepEqual(b, ['b', 'b', 'b', 'b'])
    assert.isUndefined(getCurrentWorkflowCtx())
  })

  test('a step body is known on its own path, not on a sibling of it', async ({ assert }) => {
    const [inside, beside] = await runInWorkflowScope(ctxOf('a'), () =>
      Promise.all([
        runInStepBody({ runId: 'a', step: 'charge' }, async () => {
          await setImmediate()
          return [currentStepBody(), getCurrentWorkflowCtx()?.runId]
        }),
        (async () => {
          await setImmediate()
          return currentStepBody()
        })(),
      ])
    )
    assert.deepEqual(inside, [{ runId: 'a', step: 'charge' }, 'a'])
    assert.isUndefined(beside)
  })

  test('a run driven from inside a step body of another is in no step body', async ({ assert }) => {
    const seen = await runInWorkflowScope(ctxOf('outer'), () =>
      runInStepBody({ runId: 'outer', step: 's' }, () =>
        runInWorkflowScope(ctxOf('inner'), async () => {
          await setImmediate()
          return [getCurrentWorkflowCtx()?.runId, currentStepBody()]
        })
      )
    )
    assert.deepEqual(seen, ['inner', undefined])
  })

  test('runOutsideWorkflow hides both scopes', async ({ assert }) => {
    const seen = await runInWorkflowScope(ctxOf('a'), () =>
      runInStepBody({ runId: 'a', step: 's' }, () =>
        ambient.runOutsideWorkflow(async () => {
          await setImmediate()
          return [getCurrentWorkflowCtx(), currentStepBody()]
        })
      )
    )
    assert.deepEqual(seen, [undefined, undefined])
  })

  test('answers and throws what the function does', ({ assert }) => {
    assert.equal(
      runInWorkflowScope(ctxOf('a'), () => 1),
      1
    )
    const error = new Error('x')
    assert.throws(
      () =>
        runInStepBody({ runId: 'a', step: 's' }, () => {
          throw error
        }),
      'x'
    )
  })

  test('copies of the package share the scopes', async ({ assert }) => {
    const copy = '../../src/authoring/ambient.ts?copy=ambient'
    const other = (await import(copy)) as typeof ambient
    assert.notStrictEqual(other.getCurrentWorkflowCtx, getCurrentWorkflowCtx)
    const seen = runInWorkflowScope(ctxOf('a'), () =>
      other.runInStepBody({ runId: 'a', step: 's' }, () => [
        other.getCurrentWorkflowCtx()?.runId,
        currentStepBody(),
        other.runInWorkflowScope(ctxOf('b'), () => getCurrentWorkflowCtx()?.runId),
      ])
    )
    assert.deepEqual(seen, ['a', { runId: 'a', step: 's' }, 'b'])
  })
})
