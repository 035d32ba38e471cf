/*
 * One execution of a workflow body, watched: what its ctx told it, whether it waits for something else,
 * and what it made of a suspension.
 */
import { runInWorkflowScope } from '../../authoring/ambient.ts'
import type { NonDeterminismError } from '../../errors.ts'
import { NonDeterminismError as Mismatch } from '../../errors.ts'
import { isContinueAsNew, isWorkflowControlFlowSignal } from '../../foundation/control_flow.ts'
import { messageOf } from '../../foundation/failure.ts'
import type { WorkflowCtx, WorkflowFn } from '../../types/ctx.ts'
import { shown } from '../difference.ts'
import { type BodyScope, runAsBody, runOutsideBody } from './unrecorded.ts'

/** What an execution was seen to do. */
export type Sighting =
  | { kind: 'swallowed'; runId: string; call: string; instead: string; signal: string }
  | { kind: 'mismatch'; error: NonDeterminismError; read: string[] }

export interface BodyWatch {
  /** A new execution begins. */
  begin(): BodyScope
  saw(sighting: Sighting): void
  /** Grows when something happened. */
  moved(): void
}

/** A body that runs and is not told to wait: by one of these the world knows that it is busy. */
export class Execution {
  /** Calls on its ctx that have not answered. */
  open = 0
  ended = false
  /** The first call that told it to unwind. */
  unwoundBy?: { call: string; signal: string }

  /** Waits for something that is no call on its ctx. */
  get astray(): boolean {
    return !this.ended && !this.unwoundBy && this.open === 0
  }
}

/** The process in which a body executes. */
export interface BodyHost {
  readonly dead: boolean
  readonly executions: Set<Execution>
}

const NEVER = new Promise<never>(() => {})

/** A body that does what `fn` does, and is watched at it. In a dead process it stands still. */
export function watchedBody(fn: WorkflowFn, watch: BodyWatch, host: BodyHost): WorkflowFn {
  return (ctx, input) => {
    if (host.dead) return NEVER
    const scope = watch.begin()
    const execution = new Execution()
    host.executions.add(execution)
    const watched = watchedCtx(ctx, { execution, scope, watch, host })
    return runInWorkflowScope(watched, () =>
      runAsBody(scope, async () => {
        let instead: string
        try {
          const value = await fn(watched, input)
          instead = `returned ${shown(value, 60)}`
          return value
        } catch (error) {
          instead = isWorkflowControlFlowSignal(error) ? '' : `threw "${messageOf(error)}"`
          throw error
        } finally {
          conclude(execution, { runId: ctx.runId, watch, instead: instead! })
        }
      })
    )
  }
}

function conclude(
  execution: Execution,
  { runId, watch, instead }: { runId: string; watch: BodyWatch; instead: string }
): void {
  const { unwoundBy } = execution
  execution.ended = true
  watch.moved()
  if (unwoundBy && instead !== '') watch.saw({ kind: 'swallowed', runId, ...unwoundBy, instead })
}

interface Watched {
  execution: Execution
  scope: BodyScope
  watch: BodyWatch
  host: BodyHost
}

function watchedCtx(ctx: WorkflowCtx, about: Watched): WorkflowCtx {
  return new Proxy(ctx, {
    get(target, name) {
      const member = Reflect.get(target, name) as unknown
      if (typeof member !== 'function' || typeof name !== 'string') return member
      return (...args: unknown[]): unknown => {
        if (about.host.dead) return NEVER
        // What the engine does for a call is not the body's doing.
        const answer = runOutsideBody(() => Reflect.apply(member, target, args) as unknown)
        return answer instanceof Promise ? watchedCall(name, args, answer, about) : answer
      }
    },
  })
}

function watchedCall(
  name: string,
  [first]: unknown[],
  answer: Promise<unknown>,
  { execution, scope, watch, host }: Watched
): Promise<unknown> {
  execution.open += 1
  const call = typeof first === 'string' ? `ctx.${name}("${first}")` : `ctx.${name}(…)`
  const done = answer.then(
    (value) => {
      if (host.dead) return NEVER
      execution.open -= 1
      watch.moved()
      return value
    },
    (error: unknown) => {
      if (host.dead) return NEVER
      execution.open -= 1
      watch.moved()
      if (error instanceof Mismatch) {
        watch.saw({ kind: 'mismatch', error, read: [...scope.read] })
      } else if (isWorkflowControlFlowSignal(error) && !execution.ended) {
        const signal = isContinueAsNew(error) ? 'continue-as-new' : 'suspension'
        execution.unwoundBy ??= { call, signal }
      }
      throw error
    }
  )
  // Like every ctx promise: a body that suspends may have dropped it.
  done.catch(() => {})
  return done
}
