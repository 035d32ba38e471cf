/*
 * What the options do that are about the upkeep of runs: one proof each, for config_effects.spec.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Assert } from '@japa/assert'
import type {
  DeadLetter,
  DurableConfig,
  InMemoryStateStore,
  StalledRunInfo,
  WorkflowEngine,
  WorkflowRun,
} from '../../index.ts'

interface Rig {
  assert: Assert
  boot(config: DurableConfig): Promise<{ engine: WorkflowEngine; store: InMemoryStateStore }>
}

const row = (id: string, patch: Partial<WorkflowRun>): WorkflowRun => ({
  id,
  workflow: 'gone',
  workflowVersion: '1',
  status: 'completed',
  namespace: 'default',
  input: 7,
  createdAt: new Date(0),
  updatedAt: new Date(0),
  ...patch,
})

export const UPKEEP_EFFECTS = {
  async deadLetterWorkflow({ assert, boot }: Rig) {
    const { engine, store } = await boot({ deadLetterWorkflow: 'bury', maxRecoveryAttempts: 0 })
    engine.register('bury', '1', async (_ctx, letter: DeadLetter) => letter)
    await store.createRun(row('r', { status: 'running' }))
    await engine.recoverIncomplete()
    const end = await engine.waitForRun('dlq:r', { terminal: true })
    const { error, ...letter } = end.output as DeadLetter
    assert.deepEqual(letter, { deadRunId: 'r', workflow: 'gone', input: 7 })
    assert.equal(error?.code, 'max_recovery_attempts')
  },

  async retention({ assert, boot }: Rig) {
    const { engine, store } = await boot({ retention: { completed: '30d' } })
    await store.createRun(row('old', {}))
    await store.createRun(row('new', { updatedAt: new Date() }))
    assert.equal(await engine.sweepRetention(), 1)
    assert.isNull(await engine.getRun('old'))
    assert.isNotNull(await engine.getRun('new'))
  },

  async stalledAfter({ assert, boot }: Rig) {
    const told: string[][] = []
    for (const stalledAfter of ['1h', undefined]) {
      const { engine, store } = await boot({ stalledAfter })
      const since = new Date(Date.now() - 30 * 60_000)
      await store.createRun(row('r', { status: 'pending', createdAt: since, updatedAt: since }))
      const infos: StalledRunInfo[] = []
      engine.onStalled((info) => void infos.push(info))
      await engine.sweepStalled()
      told.push(infos.map(({ run }) => run.id))
    }
    assert.deepEqual(told, [[], ['r']])
  },

  async eventBufferTtl({ assert, boot }: Rig) {
    const { engine, store } = await boot({ eventBufferTtl: 1 })
    engine.register('waits', '1', async (ctx) => ctx.waitForEvent('e'))
    await engine.publishEvent('e', 'old')
    await sleep(20)
    await engine.start('waits', null, 'r')
    await engine.waitForRun('r', { timeoutMs: 5000 })
    await engine.publishEvent('e', 'new')
    const run = await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.equal(run.output, 'new')
    // Retention deletes it, without any rule about runs.
    assert.lengthOf(await store.listBufferedEvents('e', 10), 1)
    await engine.sweepRetention()
    assert.lengthOf(await store.listBufferedEvents('e', 10), 0)
  },
}
