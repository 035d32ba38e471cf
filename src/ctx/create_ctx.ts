/*
 * The authoring API of one run: every primitive over one scope. A run uses few of them, and many contexts
 * are kept live: a group of primitives is made when the first of them is asked for.
 */
import type { WorkflowCtx } from '../types/ctx.ts'
import { childPrimitives } from './children.ts'
import { entityPrimitives } from './entities.ts'
import { externalPrimitives } from './external.ts'
import { fanPrimitives } from './fans.ts'
import { localPrimitives } from './local.ts'
import { Scope, type ScopeOptions } from './scope.ts'
import { signalPrimitives } from './signals.ts'
import { statePrimitives } from './state.ts'
import { stepPrimitives } from './steps.ts'
import { timePrimitives } from './time.ts'

type Primitives = Omit<WorkflowCtx, 'runId'>
type Group = (scope: Scope) => Partial<Primitives>

const GROUP_OF: { [Name in keyof Primitives]: (scope: Scope) => Pick<Primitives, Name> } = {
  step: stepPrimitives,
  localStep: localPrimitives,
  transaction: localPrimitives,
  now: localPrimitives,
  sideEffect: localPrimitives,
  sleep: timePrimitives,
  sleepUntil: timePrimitives,
  waitForSignal: signalPrimitives,
  waitForEvent: signalPrimitives,
  onUpdate: signalPrimitives,
  task: externalPrimitives,
  webhook: externalPrimitives,
  breakpoint: externalPrimitives,
  callEntity: entityPrimitives,
  signalEntity: entityPrimitives,
  child: childPrimitives,
  startChild: childPrimitives,
  all: fanPrimitives,
  allSettled: fanPrimitives,
  setEvent: statePrimitives,
  patched: statePrimitives,
  upsertSearchAttributes: statePrimitives,
  continueAsNew: statePrimitives,
}

class LazyCtx {
  readonly #scope: Scope
  readonly runId: string

  constructor(scope: Scope) {
    this.#scope = scope
    this.runId = scope.runId
  }

  static {
    for (const [name, group] of Object.entries<Group>(GROUP_OF)) {
      Object.defineProperty(LazyCtx.prototype, name, {
        configurable: true,
        get(this: LazyCtx) {
          // Own properties from here on: also the others of the group.
          for (const [member, value] of Object.entries(group(this.#scope))) {
            define(this, member, value)
          }
          return Reflect.get(this, name) as unknown
        },
        set(this: LazyCtx, value: unknown) {
          define(this, name, value)
        },
      })
    }
  }
}

function define(ctx: LazyCtx, name: string, value: unknown): void {
  Object.defineProperty(ctx, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  })
}

export function createCtx(options: ScopeOptions): WorkflowCtx {
  return new LazyCtx(new Scope(options)) as unknown as WorkflowCtx
}
