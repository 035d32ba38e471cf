/*
 * Durable sleeps. The first deadline recorded is the only one ever used.
 */
import { InvalidArgumentError } from '../errors.ts'
import { parseDuration } from '../foundation/duration.ts'
import { marks } from '../replay/guard.ts'
import type { WorkflowCtx } from '../types/ctx.ts'
import { readTimer } from './readings.ts'
import type { Scope } from './scope.ts'

export function timePrimitives(scope: Scope): Pick<WorkflowCtx, 'sleep' | 'sleepUntil'> {
  const timer = (deadline: { afterMs: number } | { at: number }) =>
    scope.open<void>({
      primitive: 'sleep',
      width: 1,
      at: (seq) => ({
        marks: marks.sleep(),
        command: { kind: 'timer', seq, name: 'sleep', ...deadline },
        read: readTimer,
      }),
    })
  return {
    sleep: (duration) =>
      scope.primitive('sleep', () => timer({ afterMs: parseDuration(duration) })),
    sleepUntil: (when) =>
      scope.primitive('sleepUntil', () => {
        const at = when instanceof Date ? when.getTime() : when
        if (typeof at !== 'number' || Number.isNaN(new Date(at).getTime())) {
          throw new InvalidArgumentError('ctx.sleepUntil', 'takes a valid Date or epoch ms')
        }
        return timer({ at })
      }),
  }
}
