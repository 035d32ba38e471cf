/*
 * Work and decisions from outside: tasks that somebody reports back, webhooks, breakpoints.
 */
import { checkOptions, OPTIONS } from '../authoring/options.ts'
import { FatalError, InvalidArgumentError } from '../errors.ts'
import { storableToken } from '../foundation/ids.ts'
import { MAX_NAME_BYTES } from '../foundation/keys.ts'
import { breakpointName, breakpointToken, taskToken, webhookToken } from '../foundation/tokens.ts'
import { marks, TASK_ROW } from '../replay/guard.ts'
import type { Undo } from '../replay/open_await.ts'
import type { DurableWebhook, WorkflowCtx } from '../types/ctx.ts'
import type { StepOptions } from '../types/step.ts'
import { checkPolicy, checkUndo } from './policy.ts'
import { answeredWith, OPEN, readSignal, readTask } from './readings.ts'
import type { Scope } from './scope.ts'
import { checkTimeout } from './signals.ts'

type Members = 'task' | 'webhook' | 'breakpoint'

export function externalPrimitives(scope: Scope): Pick<WorkflowCtx, Members> {
  const tasks = new Set<string>()
  return {
    task: <T>(name: string, dispatch: () => Promise<void>, options: StepOptions = {}) =>
      scope.primitive('task', () => {
        scope.checkName('task', name, MAX_NAME_BYTES - TASK_ROW.length)
        if (typeof dispatch !== 'function') {
          throw new InvalidArgumentError(
            `ctx.task("${name}")`,
            'takes the function that hands it over'
          )
        }
        checkOptions(`ctx.task("${name}")`, options, OPTIONS.localStep)
        checkPolicy(`ctx.task("${name}")`, options)
        checkUndo(`ctx.task("${name}")`, options.compensate)
        if (tasks.has(name)) {
          throw new InvalidArgumentError(
            `ctx.task("${name}")`,
            'was called before in this run, so no report could be told to be for this one; give each task a name of its own'
          )
        }
        tasks.add(name)
        return openTask<T>(scope, name, dispatch, {
          options,
          notHandedOver: () => tasks.delete(name),
        })
      }),

    webhook: <T>() => mintWebhook<T>(scope),

    breakpoint: (label) =>
      scope.primitive('breakpoint', () => {
        const name = breakpointName(label)
        scope.checkName('breakpoint', name)
        return scope
          .open<unknown>({
            primitive: 'breakpoint',
            width: 1,
            at: (seq) => {
              const token = storableToken(breakpointToken(scope.runId, seq))
              return {
                marks: marks.breakpoint(token, name),
                command: { kind: 'breakpoint', seq, name, token },
                read: (rows) => {
                  const row = rows(0)
                  return row?.status === 'completed' ? answeredWith(row, undefined) : OPEN
                },
              }
            },
          })
          .then(() => undefined)
      }),
  }
}

function openTask<T>(
  scope: Scope,
  name: string,
  dispatch: () => Promise<void>,
  { options, notHandedOver }: { options: StepOptions; notHandedOver: () => void }
): Promise<T> {
  const token = storableToken(taskToken(scope.runId, name))
  const undo: Undo | undefined = options.compensate && {
    kind: 'local',
    name,
    run: options.compensate,
  }
  const handOver = async () => {
    await dispatch()
  }
  let handedOver = true
  const answer = scope.open<T>({
    primitive: 'task',
    width: 2,
    at: (seq) => ({
      marks: marks.task(name, token),
      command: {
        kind: 'task',
        seq,
        handOver: { kind: 'local', seq, name: TASK_ROW + name, run: handOver, options },
        wait: { kind: 'signal', seq: seq + 1, signalSeq: seq + 1, token },
      },
      read: (rows) => {
        const reading = readTask(rows, name)
        handedOver = rows(0)?.status !== 'failed'
        return reading
      },
      undo,
    }),
  })
  // Nobody will report on it. Told when the body hears of it, which is the same moment in every replay.
  answer.catch(() => {
    if (!handedOver) notHandedOver()
  })
  return answer
}

/** The token exists at once, so it can be given away before anybody waits. */
function mintWebhook<T>(scope: Scope): DurableWebhook<T> {
  scope.refuseInStep('webhook')
  const tokenAt = (seq: number) => storableToken(webhookToken(scope.runId, seq))
  const minted = scope.replay.mint((seq) => marks.webhook(tokenAt(seq))[0])
  if ('error' in minted) throw minted.error
  const { seq: position } = minted
  const token = tokenAt(position)
  return {
    token,
    url: scope.webhookUrl?.(token),
    wait: (options = {}) =>
      scope.primitive('webhook', () => {
        checkOptions('ctx.webhook: wait', options, OPTIONS.wait)
        checkTimeout('webhook', options.timeoutMs)
        if (scope.replay.isOpen(position)) {
          throw new FatalError(`webhook ${token} is being waited for already`)
        }
        return waitForWebhook<T>(scope, token, position, options.timeoutMs)
      }),
  }
}

function waitForWebhook<T>(
  scope: Scope,
  token: string,
  minted: number,
  timeoutMs: number | undefined
): Promise<T> {
  const bounded = timeoutMs !== undefined
  return scope.open<T>({
    primitive: 'webhook',
    width: bounded ? 1 : 0,
    minted,
    at: (seq) => ({
      marks: bounded ? marks.webhookTimeout(token) : [],
      command: {
        kind: 'signal',
        seq: bounded ? seq : minted,
        signalSeq: minted,
        token,
        timeoutMs,
      },
      read: (rows) =>
        bounded
          ? readSignal(rows(0), rows(1), { token, timeoutMs })
          : readSignal(undefined, rows(0), { token }),
    }),
  })
}
