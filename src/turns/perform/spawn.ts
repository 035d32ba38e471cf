/*
 * Fire-and-forget children: the run row and the record of its start in one commit.
 */
import { SPAWN_ROW } from '../../foundation/ids.ts'
import type { CommandOf } from '../../replay/commands.ts'
import { isSettledStatus } from '../../types/checkpoint.ts'
import type { WorkflowRun } from '../../types/run.ts'
import type { Turn } from '../turn.ts'
import { startFailure } from './child.ts'

export function performSpawn(command: CommandOf<'spawn'>, turn: Turn): void {
  const { seq, childId, workflow } = command
  if (turn.isWorking(seq)) return
  const recorded = turn.history.at(seq)
  if (recorded && isSettledStatus(recorded.status)) return
  turn.reserve(seq)
  turn.send(async () => {
    const name = SPAWN_ROW + childId
    const row = turn.newRow({ seq, name, kind: 'local', status: 'completed', output: childId })
    let child: WorkflowRun | undefined
    try {
      child = await turn.needs.children.prepare(command, turn.run)
    } catch (error) {
      const completion = startFailure(workflow, error)
      turn.needs.effect({ kind: 'reportStartFailure', childId, completion })
    }
    if (child) turn.journal.append({ run: child }, { urgent: true })
    turn.write(row, {
      urgent: true,
      inFlight: true,
      then: () => {
        if (child) turn.needs.effect({ kind: 'startChild', run: child })
        turn.release(seq)
      },
    })
  })
}
