/*
 * Child workflows. The child's id is derived from the position unless the caller names one, so every
 * replay means the same run.
 */
import { checkOptions, OPTIONS } from '../authoring/options.ts'
import { workflowName } from '../authoring/workflow_ref.ts'
import { FatalError, InvalidArgumentError } from '../errors.ts'
import { childIdOf, MAX_CHILD_ID_BYTES } from '../foundation/ids.ts'
import { keyProblem } from '../foundation/keys.ts'
import { marks } from '../replay/guard.ts'
import type { Reading, RowsOfCall } from '../replay/open_await.ts'
import type { CompletionEnvelope } from '../types/checkpoint.ts'
import type { ChildCallOptions, WorkflowCtx } from '../types/ctx.ts'
import type { WorkflowRef } from '../types/workflow.ts'
import { answeredWith, failedWith, OPEN, readLocal } from './readings.ts'
import type { Scope } from './scope.ts'

type Options = string | ChildCallOptions | undefined

export function childPrimitives(scope: Scope): Pick<WorkflowCtx, 'child' | 'startChild'> {
  const call = (
    primitive: 'child' | 'startChild',
    ref: WorkflowRef,
    input: unknown,
    given: Options
  ) =>
    scope.primitive(primitive, () => {
      const workflow = workflowName(ref)
      const options = typeof given === 'object' ? (given ?? {}) : { childId: given }
      checkOptions(`ctx.${primitive}`, options, OPTIONS.child)
      const stored = scope.stored(input, `the input of child workflow "${workflow}"`)
      const { priority } = options
      const isWhole = Number.isInteger(priority) && Math.abs(Number(priority)) < 2 ** 31
      if (priority !== undefined && !isWhole) {
        throw new InvalidArgumentError(
          `ctx.${primitive}: priority`,
          'must be an integer of at most 32 bits'
        )
      }
      // The position is not taken yet, and nothing comes between here and there.
      const childId = options.childId ?? childIdOf(scope.runId, scope.replay.position)
      const itself = childId === scope.runId ? 'is the id of this very run' : undefined
      const problem = keyProblem(childId, MAX_CHILD_ID_BYTES) ?? itself
      if (problem) throw new InvalidArgumentError(`ctx.${primitive}: the child id`, problem)
      const kind = primitive === 'child' ? 'child' : 'spawn'
      return scope.open({
        primitive,
        width: 1,
        at: (seq) => ({
          marks: marks[primitive](childId),
          command: { kind, seq, childId, workflow, input: stored, priority },
          read: kind === 'child' ? (rows) => readChild(rows, childId) : readLocal,
        }),
      })
    })
  return {
    child: ((ref: WorkflowRef, input: unknown, options: Options) =>
      call('child', ref, input, options)) as WorkflowCtx['child'],
    startChild: ((ref: WorkflowRef, input: unknown, options: Options) =>
      call('startChild', ref, input, options)) as WorkflowCtx['startChild'],
  }
}

/** A child's row: its completion answers. */
export function readChild(rows: RowsOfCall, childId: string): Reading {
  const row = rows(0)
  if (row?.status !== 'completed') return OPEN
  const completion = row.output as CompletionEnvelope
  if (completion.ok) return answeredWith(row, completion.value)
  const { error, code, details } = completion
  return failedWith(row, new FatalError(`child "${childId}" failed: ${error}`, code, details))
}
