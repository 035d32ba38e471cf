import { test } from '@japa/runner'
import DurableRuns from '../../commands/durable_runs.ts'
import { stepRow } from '../insight/rows.ts'
import { rig, storedRun } from './runs_rig.ts'

const MINUTE = 60_000
const ago = (minutes: number) => new Date(Date.now() - minutes * MINUTE)

/** A run that waits for a step which was sent this many minutes ago. */
async function waiting(
  store: Awaited<ReturnType<typeof rig>>['store'],
  id: string,
  minutes: number
) {
  const run = { status: 'suspended' as const, updatedAt: ago(1), createdAt: ago(minutes) }
  await store.createRun(storedRun(id, { ...run, turns: 1, wakeAt: Date.now() + 4 * MINUTE }))
  const row = { runId: id, status: 'pending' as const, workerGroup: 'charge' }
  await store.saveCheckpoint(stepRow(0, { ...row, enqueuedAt: ago(minutes) }))
}

test.group('durable:runs', () => {
  test('lists runs, newest first, with the age of what is out', async ({ assert }) => {
    const { store, run } = await rig()
    await store.createRun(storedRun('old', { status: 'failed', recoveryAttempts: 2 }))
    await waiting(store, 'new', 14)
    await store.createRun(storedRun('signal', { status: 'suspended', createdAt: ago(2) }))
    await store.putSignalWaiter({ token: 'approve:1', runId: 'signal', seq: 0 })
    const { exitCode, stdout, stderr } = await run(DurableRuns, [])
    assert.notEqual(exitCode, 1)
    assert.isEmpty(stderr)
    const lines = stdout.join('\n').split('\n')
    assert.match(
      lines[0],
      /^RUN {5}WORKFLOW {4}STATUS {5}UPDATED {2}\s*RECOVERY {2}PENDING\s+WAITS FOR$/
    )
    assert.match(lines[1], /^signal {2}checkout@4 {2}suspended .* - +signal approve:1$/)
    assert.match(lines[2], /^new {5}checkout@4 {2}suspended {2}1m\s+- {9}14m \(attempt 1\) +-$/)
    assert.match(lines[3], /^old {5}checkout@4 {2}failed {5}\d+d\w* +2 {9}-/)
  })

  test('reads no history that has ended', async ({ assert }) => {
    const { store, run } = await rig({
      listCheckpoints: async () => {
        throw new Error('a whole history was read')
      },
    })
    await waiting(store, 'r', 14)
    const { stdout, stderr } = await run(DurableRuns, [])
    assert.isEmpty(stderr)
    assert.include(stdout.join('\n'), '14m (attempt 1)')
  })

  test('narrows the list', async ({ assert }) => {
    const { store, run } = await rig()
    await store.createRun(storedRun('a', { status: 'failed', tags: ['vip'] }))
    await store.createRun(storedRun('b', { status: 'failed', workflow: 'refund' }))
    await store.createRun(storedRun('c', { namespace: 'eu' }))
    const ids = async (...args: string[]) => {
      const { stdout } = await run(DurableRuns, [...args, '--json'])
      const rows = JSON.parse(stdout.join('')) as { id: string }[]
      return rows.map(({ id }) => id).join('')
    }
    assert.equal(await ids(), 'cba')
    assert.equal(await ids('--status=failed'), 'ba')
    assert.equal(await ids('--workflow=refund'), 'b')
    assert.equal(await ids('--namespace=eu'), 'c')
    assert.equal(await ids('--tag=vip'), 'a')
    assert.equal(await ids('--limit=1'), 'c')
    assert.equal(await ids('--status=dead'), '')
    const { stdout } = await run(DurableRuns, ['--status=dead'])
    assert.deepEqual(stdout, ['No runs.'])
  })

  test('--stale keeps the runs whose step is silent, and says what to do', async ({ assert }) => {
    const { store, run } = await rig()
    await waiting(store, 'lost', 40)
    await waiting(store, 'fresh', 5)
    await store.createRun(storedRun('done', {}))
    const bare = await run(DurableRuns, ['--stale', '--json'])
    assert.include(bare.stdout.join(''), '"lost"')
    assert.notInclude(bare.stdout.join(''), '"fresh"')
    assert.lengthOf(bare.stderr, 1)
    assert.include(bare.stderr[0], `engine.redispatchPending('lost')`)
    assert.include(bare.stderr[0], 'node ace durable:retry lost')
    assert.deepEqual(JSON.parse(bare.stdout.join(''))[0].stalePending.heartbeatAgeMs, null)
    const shorter = await run(DurableRuns, ['--stale=2m', '--limit=2'])
    assert.lengthOf(shorter.stderr, 3)
    assert.include(shorter.stderr[2], 'only the newest 2 runs were looked at')
  })

  test('with an id it says why the run waits, what comes next and what to do', async ({
    assert,
  }) => {
    const { store, run } = await rig()
    await waiting(store, 'lost', 40)
    const { stdout, exitCode } = await run(DurableRuns, ['lost'])
    assert.notEqual(exitCode, 1)
    assert.deepEqual(stdout, [
      'lost  checkout@4  suspended, changed 1m ago',
      'Why   charge was handed out 40m ago, and nobody reports working on it: the task is probably lost.',
      'Next  Nothing happens by itself.',
      'You   If the task is known to be lost, send it again: engine.redispatchPending("lost")',
    ])
    const json = await run(DurableRuns, ['lost', '--json'])
    const { explanation, run: summary } = JSON.parse(json.stdout.join(''))
    assert.equal(explanation.code, 'step_lost')
    assert.equal(summary.status, 'suspended')
    assert.notProperty(summary, 'input')
  })

  test('refuses what it cannot do with exit code 1', async ({ assert }) => {
    const { run } = await rig()
    for (const [args, message] of [
      [['nobody'], 'there is no run nobody'],
      [['--status=odd'], '--status=odd is unknown: use pending, running, suspended, blocked'],
      [['--stale=x'], '--stale=x is no duration such as 90s, 30m, 2h or 1d'],
      [['--stale=-5m'], '--stale=-5m is no duration'],
      [['--limit=2.5'], '--limit must be a whole number from 1 to 1000'],
      [['one', 'two'], '"two" is one argument too many: give one id at a time'],
      [['one', '--status=failed'], '--status selects runs of a list: leave it out, or the id'],
      [['--limit=0'], '--limit must be a whole number from 1 to 1000'],
    ] as const) {
      const { exitCode, stderr, stdout } = await run(DurableRuns, [...args, '--json'])
      assert.equal(exitCode, 1)
      assert.include(stderr.join(), message)
      assert.isEmpty(stdout)
    }
  })

  test('exits with 2 when the store does not answer', async ({ assert }) => {
    const { run } = await rig({
      listRuns: async () => {
        throw new Error('connect ECONNREFUSED')
      },
    })
    const { exitCode, stderr } = await run(DurableRuns, [])
    assert.equal(exitCode, 2)
    assert.include(stderr[0], 'durable: connect ECONNREFUSED')
  })
})
