/*
 * Search attributes: merged into the run by the commit that records it, so they change exactly once. What
 * a schema refuses is recorded like any failure of local work.
 */
import { InvalidArgumentError, SchemaValidationError } from '../../errors.ts'
import { toStepError } from '../../foundation/failure.ts'
import { checkStandardSync } from '../../foundation/standard_schema.ts'
import type { CommandOf } from '../../replay/commands.ts'
import type { SearchAttributes } from '../../types/run.ts'
import type { Turn } from '../turn.ts'

const NAME = 'searchAttributes'

export function performAttributes(command: CommandOf<'attributes'>, turn: Turn): void {
  const { seq, attributes } = command
  const replaced = turn.history.at(seq)
  if (replaced && !(replaced.status === 'failed' && replaced.attempts === 0)) return
  const merged = { ...turn.attributes, ...attributes }
  const retryOf = replaced?.attempts
  const error = refusal(turn, merged)
  if (error) {
    const row = turn.newRow({
      seq,
      name: NAME,
      kind: 'local',
      status: 'failed',
      error: toStepError(error),
    })
    return turn.write(row, { urgent: false, thrown: error, retryOf })
  }
  turn.attributes = merged
  turn.journal.append({ attributes }, { urgent: false })
  const row = turn.newRow({ seq, name: NAME, kind: 'local', status: 'completed' })
  turn.write(row, { urgent: false, retryOf })
}

function refusal(turn: Turn, merged: SearchAttributes): Error | undefined {
  const { workflow, workflowVersion } = turn.run
  const schema = turn.needs.lookup.find(workflow, workflowVersion)?.searchAttributesSchema
  if (!schema) return undefined
  const what = `the search attributes of workflow "${workflow}"`
  const verdict = checkStandardSync(schema, merged)
  if (!verdict) return new InvalidArgumentError(what, 'have a schema that validates asynchronously')
  return verdict.ok ? undefined : new SchemaValidationError(what, verdict.issues)
}
