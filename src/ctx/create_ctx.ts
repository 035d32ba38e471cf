/*
 * The authoring API of one run: every primitive over one scope.
 */
import type { WorkflowCtx } from '../types/ctx.ts'
import { childPrimitives } from './children.ts'
import { fanPrimitives } from './fans.ts'
import { localPrimitives } from './local.ts'
import { Scope, type ScopeOptions } from './scope.ts'
import { signalPrimitives } from './signals.ts'
import { statePrimitives } from './state.ts'
import { stepPrimitives } from './steps.ts'
import { timePrimitives } from './time.ts'

export function createCtx(options: ScopeOptions): WorkflowCtx {
  const scope = new Scope(options)
  return {
    runId: scope.runId,
    ...stepPrimitives(scope),
    ...localPrimitives(scope),
    ...timePrimitives(scope),
    ...signalPrimitives(scope),
    ...childPrimitives(scope),
    ...fanPrimitives(scope),
    ...statePrimitives(scope),
  }
}
