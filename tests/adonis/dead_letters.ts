/*
 * What `deadLetterWorkflow` of the config does.
 */
import type { Assert } from '@japa/assert'
import type { DeadLetter, DurableConfig, InMemoryStateStore, WorkflowEngine } from '../../index.ts'

interface Rig {
  assert: Assert
  boot(config: DurableConfig): Promise<{ engine: WorkflowEngine; store: InMemoryStateStore }>
}

export async function handsOverTheDead({ assert, boot }: Rig): Promise<void> {
  const { engine, store } = await boot({ deadLetterWorkflow: 'bury', maxRecoveryAttempts: 0 })
  engine.register('bury', '1', async (_ctx, letter: DeadLetter) => letter)
  const at = new Date()
  const row = { workflow: 'gone', workflowVersion: '1', input: 7, createdAt: at, updatedAt: at }
  await store.createRun({ id: 'r', status: 'running', ...row })
  await engine.recoverIncomplete()
  const end = await engine.waitForRun('dlq:r', { terminal: true })
  const { error, ...letter } = end.output as DeadLetter
  assert.deepEqual(letter, { deadRunId: 'r', workflow: 'gone', input: 7 })
  assert.equal(error?.code, 'max_recovery_attempts')
}
