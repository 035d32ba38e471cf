/*
 * Stopping a worker process by signals: what it was doing is finished or left to the next one, within the
 * budget; who insists gets an end at once.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { getActiveTestOrFail, test } from '@japa/runner'
import { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createDatabase, type Dialect, reachableDialects } from '../../helpers/databases.ts'
import { createLedger, LEDGER } from './five_steps.ts'

const SCRIPT = join(import.meta.dirname, 'worker_command.ts')
const RUNS = 60
const LEASE_MS = 2000
const MINUTE = 60_000

const dialects = await reachableDialects()

/** A process with the command; what it says is kept. */
class WorkerProcess {
  #said = ''
  readonly #child
  readonly exited: Promise<unknown[]>

  constructor(location: object, ...flags: string[]) {
    const given = JSON.stringify({ location, leaseMs: LEASE_MS })
    const args = ['--import=@poppinss/ts-exec', '--enable-source-maps', SCRIPT, given, ...flags]
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    this.exited = once(this.#child, 'exit')
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.on('data', (chunk) => (this.#said += String(chunk)))
    }
    getActiveTestOrFail().cleanup(() => void this.#child.kill('SIGKILL'))
  }

  get said(): string {
    return this.#said
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Its exit code. */
  async ended(): Promise<unknown> {
    const [code, signal] = await this.exited
    return code ?? signal
  }

  /** Resolves when it holds; fails when the process ends before. */
  async until(holds: () => boolean | Promise<boolean>): Promise<void> {
    let over = false
    void this.exited.then(() => (over = true))
    while (!(await holds())) {
      if (over) throw new Error(`the worker ended: ${this.#said}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  async says(text: string): Promise<void> {
    await this.until(() => this.#said.includes(text))
  }
}

/** Data with a process that starts runs and executes none. */
async function shop(dialect: Dialect) {
  const database = await createDatabase(dialect)
  getActiveTestOrFail().cleanup(database.cleanup)
  const store = new LucidStateStore(database.db)
  await store.ensureSchema()
  await createLedger(database.db)
  const starter = new WorkflowEngine({ store, runDispatcher: { dispatch: () => {} } })
  for (const name of ['shop', 'stuck']) starter.register(name, '1', async () => null)
  return { ...database, store, starter }
}

test.group('Stopping a worker process', (group) => {
  group.each.timeout(3 * MINUTE)

  test('SIGTERM under load on {$self}: no turn is cut off, and the next worker does the rest')
    .with(dialects)
    .run(async ({ assert }, dialect) => {
      const { db, location, store, starter } = await shop(dialect)
      for (let n = 0; n < RUNS; n++) await starter.start('shop', n, `r${n}`)
      const completed = () => store.countRuns({ workflow: 'shop', status: 'completed' })

      const first = new WorkerProcess(location, '--interval=25', '--drain-timeout=60000')
      await first.until(async () => (await completed()) >= 3)
      first.signal('SIGTERM')
      assert.equal(await first.ended(), 0, first.said)
      assert.include(first.said, 'received SIGTERM')
      assert.match(first.said, /durable:work stopped after \d+ ticks/)
      // It stopped in the middle, and let go of everything.
      const left = await store.listRuns({})
      assert.isBelow(await completed(), RUNS)
      assert.deepEqual(
        left.filter(({ status, lockedBy }) => status === 'running' || lockedBy !== undefined),
        []
      )

      const next = new WorkerProcess(location, '--interval=25')
      await next.until(async () => (await completed()) === RUNS)
      next.signal('SIGTERM')
      assert.equal(await next.ended(), 0, next.said)
      for (let n = 0; n < RUNS; n++) {
        const run = await store.getRun(`r${n}`)
        assert.deepEqual([run?.status, run?.output], ['completed', 2 * n + n + 1])
      }
      const rows = (await db.from(LEDGER).select('run_id')) as { run_id: string }[]
      assert.sameMembers(
        rows.map((row) => row.run_id),
        Array.from({ length: RUNS }, (_, n) => `r${n}`)
      )
      const runs = await store.listRuns({})
      assert.lengthOf(runs, 2 * RUNS)
      for (const run of runs) {
        assert.notProperty(run, 'recoveryAttempts', run.id)
        assert.notProperty(run, 'lockedBy', run.id)
      }
    })

  test('a turn that does not end in time is left to recovery when the budget is spent', async ({
    assert,
  }) => {
    const { location, store, starter } = await shop('sqlite')
    await starter.start('stuck', null, 'stuck')
    const worker = new WorkerProcess(location, '--interval=25', '--drain-timeout=300')
    await worker.says('a step is stuck')
    worker.signal('SIGTERM')
    assert.equal(await worker.ended(), 0, worker.said)
    assert.match(worker.said, /durable:work stopped after \d+ ticks?/)
    const run = await store.getRun('stuck')
    assert.equal(run?.status, 'running')
    assert.isAtMost(run!.lockedUntil!, Date.now() + LEASE_MS)
  })

  test('a second signal ends at once what waits for a turn', async ({ assert }) => {
    const { location, store, starter } = await shop('sqlite')
    await starter.start('stuck', null, 'stuck')
    const worker = new WorkerProcess(location, '--interval=25', '--drain-timeout=3600000')
    await worker.says('a step is stuck')
    worker.signal('SIGINT')
    await worker.says('received SIGINT')
    worker.signal('SIGTERM')
    assert.equal(await worker.ended(), 1, worker.said)
    assert.notInclude(worker.said, 'durable:work stopped')
    const run = await store.getRun('stuck')
    assert.equal(run?.status, 'running')
  })
})
