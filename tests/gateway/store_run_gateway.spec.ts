/*
 * The gateway over an engine: what it adds to the engine's own verbs; and the table of runs.
 */
import { test } from '@japa/runner'
import {
  InMemoryStateStore,
  renderRunsTable,
  type RunLiveness,
  StoreRunGateway,
  WorkflowEngine,
} from '../../index.ts'
import { storedRun } from '../commands/runs_rig.ts'

function gateway() {
  const engine = new WorkflowEngine({ store: new InMemoryStateStore() })
  engine.register('waits', '1', (ctx) => ctx.waitForSignal('go'))
  return { engine, gateway: new StoreRunGateway(engine) }
}

test.group('StoreRunGateway', () => {
  test('starts a run under an id of its own unless one is given', async ({ assert }) => {
    const rig = gateway()
    const one = await rig.gateway.start('waits', null)
    const two = await rig.gateway.start('waits', null)
    const named = await rig.gateway.start('waits', null, { runId: 'r', tags: ['vip'] })
    assert.notEqual(one.runId, two.runId)
    assert.equal(named.runId, 'r')
    const run = await rig.gateway.getRun('r')
    assert.deepEqual(run?.tags, ['vip'])
    await rig.engine.drain(1000)
  })

  test('hears the events of one run only, until it is stopped', async ({ assert }) => {
    const rig = gateway()
    const heard: string[] = []
    const stop = rig.gateway.subscribe(
      'r',
      ({ type, runId }) => void heard.push(`${runId} ${type}`)
    )
    for (const id of ['r', 'other']) {
      await rig.engine.start('waits', null, id)
      await rig.engine.waitForRun(id, { timeoutMs: 5000 })
    }
    stop()
    await rig.gateway.cancel('r')
    assert.deepEqual(heard, ['r run.started', 'r run.suspended'])
  })

  test('delivers by token, and has no workers to report over a transport that reports none', async ({
    assert,
  }) => {
    const rig = gateway()
    await rig.engine.start('waits', null, 'r')
    await rig.engine.waitForRun('r', { timeoutMs: 5000 })
    assert.deepEqual(await rig.gateway.waitingFor(['r']), { r: { on: 'signal', name: 'go' } })
    await rig.gateway.signal('r', 'go', 7)
    const end = await rig.engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.equal(end.output, 7)
    assert.deepEqual(await rig.gateway.workerHealth(), [])
    const reporting = Object.assign(rig.engine, {
      workerHealth: async () => [{ group: 'g', depth: 1, liveWorkers: [] }],
    })
    assert.lengthOf(await new StoreRunGateway(reporting).workerHealth(), 1)
  })
})

test.group('the table of runs', () => {
  const live = (id: string): RunLiveness => ({
    run: storedRun(id, { status: 'suspended' }),
    ageMs: 45_000,
    recoveryAttempts: 3,
    stalePending: { seq: 0, name: 's', attempts: 2, ageMs: 14_520_000, heartbeatAgeMs: 12_000 },
  })

  test('pads its columns and says how long a step is out', ({ assert }) => {
    assert.deepEqual(renderRunsTable([live('ord-1')]).split('\n'), [
      'RUN    WORKFLOW    STATUS     UPDATED  RECOVERY  PENDING',
      'ord-1  checkout@4  suspended  45s      3         4h2m (attempt 2, hb 12s)',
    ])
  })

  test('fits the width it is given, the short columns whole', ({ assert }) => {
    const long = live(`order-${'7'.repeat(80)}`)
    const waits = new Map([[long.run.id, `signal ${'approve'.repeat(20)}`]])
    for (const width of [140, 120, 110]) {
      const lines = renderRunsTable([long], { width, waits }).split('\n')
      for (const line of lines) assert.isAtMost([...line].length, width)
      assert.include(lines[1], 'suspended  45s      3         4h2m (attempt 2, hb 12s)')
      assert.include(lines[1], '…')
    }
  })

  test('shows what would control the terminal', ({ assert }) => {
    assert.include(renderRunsTable([live('a\u001b[2Jb')]), 'a\\u001b[2Jb')
  })
})
