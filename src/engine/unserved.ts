/*
 * Steps that nobody serves: under a transport that stays silent about them a misspelt name looks like a
 * step that takes its time. Said once for each name, since every such step is sent again and again.
 */
import type { RemoteTask } from '../wire/messages.ts'
import type { EngineLogger } from './deps.ts'

export function unservedWarning(logger: Pick<EngineLogger, 'warn'>): (task: RemoteTask) => void {
  const said = new Set<string>()
  return ({ name, runId }) => {
    if (said.has(name)) return
    said.add(name)
    logger.warn(
      `durable: step "${name}" of run ${runId} was sent, and nobody in this process serves that name. ` +
        'The run waits until somebody does.'
    )
  }
}
