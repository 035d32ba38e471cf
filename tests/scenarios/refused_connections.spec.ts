/*
 * A database server that is not there, or a file that cannot be opened: every verb of an engine says so in
 * bounded time, with the cause.
 */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { StoreUnavailableError } from '../../src/errors.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import { backendUrl } from '../helpers/backends.ts'
import { createDatabase, openDatabase, reachableDialects } from '../helpers/databases.ts'
import { TcpProxy } from '../helpers/tcp_proxy.ts'
import { until } from '../helpers/until.ts'

const VERBS: Record<string, (engine: WorkflowEngine) => Promise<unknown>> = {
  start: (engine) => engine.start('w', null, 'r'),
  signal: (engine) => engine.signal('go', 1),
  signalWithStart: (engine) => engine.signalWithStart('w', null, 'r', { token: 'go', payload: 1 }),
  publishEvent: (engine) => engine.publishEvent('e', 1),
  update: (engine) => engine.update('r', 'u', 1),
  completeTask: (engine) => engine.completeTask('r', 't', 1),
  failTask: (engine) => engine.failTask('r', 't', 'no'),
  signalEntity: (engine) => engine.signalEntity('counter', 'k', 'add', 1),
  continue: (engine) => engine.continue('r'),
  cancel: (engine) => engine.cancel('r'),
  resume: (engine) => engine.resume('r'),
  requeue: (engine) => engine.requeue('r'),
  getRun: (engine) => engine.getRun('r'),
  listRuns: (engine) => engine.listRuns(),
  countRuns: (engine) => engine.countRuns(),
  listCheckpoints: (engine) => engine.listCheckpoints('r'),
  getRunChildren: (engine) => engine.getRunChildren('r'),
  getEvent: (engine) => engine.getEvent('r', 'k'),
  getEntityState: (engine) => engine.getEntityState('counter', 'k'),
  runPending: (engine) => engine.runPending(),
  runOne: (engine) => engine.runOne('r'),
  recoverIncomplete: (engine) => engine.recoverIncomplete(),
  resumeDueTimers: (engine) => engine.resumeDueTimers(),
}

/** A port that was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

for (const dialect of ['postgres', 'mysql'] as const) {
  test.group(`Refused connections | Lucid on ${dialect}`, (group) => {
    let engine: WorkflowEngine
    group.setup(async () => {
      const target = `${dialect}://nobody@127.0.0.1:${await closedPort()}/nowhere`
      const db = openDatabase({ dialect, target })
      engine = new WorkflowEngine({
        store: new LucidStateStore(db),
        transport: new InMemoryTransport(),
        logger: { warn: () => {}, error: () => {} },
      })
      engine.register('w', '1', async () => 'done')
      engine.registerEntity('counter', {
        initialState: () => 0,
        handlers: {},
      })
      return () => db.manager.closeAll()
    })

    for (const [name, verb] of Object.entries(VERBS)) {
      test(`${name} rejects with the cause`, async ({ assert }) => {
        const error = await verb(engine).then(
          () => undefined,
          (thrown: unknown) => thrown
        )
        assert.instanceOf(error, StoreUnavailableError)
        const { cause } = error as StoreUnavailableError
        assert.equal((cause as { code?: string }).code, 'ECONNREFUSED')
      }).tags(['@scenario-15'])
    }

    test('the schema is not created, and says why', async ({ assert }) => {
      const db = openDatabase({
        dialect,
        target: `${dialect}://nobody@127.0.0.1:${await closedPort()}/nowhere`,
      })
      const error = await new LucidStateStore(db).ensureSchema().catch((thrown: unknown) => thrown)
      await db.manager.closeAll()
      assert.instanceOf(error, StoreUnavailableError)
      assert.equal(((error as Error).cause as { code?: string }).code, 'ECONNREFUSED')
    })

    test('a wait for a run gives up at its time, and a drain ends', async ({ assert }) => {
      const wait = engine.waitForRun('r', { terminal: true, timeoutMs: 50 })
      const error = await wait.catch((thrown: unknown) => thrown)
      assert.equal((error as { code?: string }).code, 'wait_timeout')
      await engine.drain(1000)
    })
  })
}

test.group('Refused connections | Lucid on sqlite', () => {
  test('a file that cannot be opened: a start and the schema reject with the cause', async ({
    assert,
    cleanup,
  }) => {
    const folder = await mkdtemp(join(tmpdir(), 'durable-test-'))
    cleanup(() => rm(folder, { recursive: true }))
    const text = join(folder, 'text')
    await writeFile(text, 'no database '.repeat(100))
    const causes = { [join(folder, 'none', 'db')]: /directory/, [text]: /not a database/ }
    for (const [target, cause] of Object.entries(causes)) {
      const db = openDatabase({ dialect: 'sqlite', target })
      cleanup(() => db.manager.closeAll())
      const store = new LucidStateStore(db)
      const engine = new WorkflowEngine({ store, transport: new InMemoryTransport() })
      engine.register('w', '1', async () => 'done')
      for (const call of [() => store.ensureSchema(), () => engine.start('w', null, 'r')]) {
        const error = await call().then(
          () => undefined,
          (thrown: unknown) => thrown
        )
        assert.instanceOf(error, StoreUnavailableError)
        assert.match(String((error as Error).cause), cause)
      }
    }
  }).tags(['@scenario-15'])
})

for (const dialect of await reachableDialects()) {
  if (dialect === 'sqlite') continue
  test.group(`Refused connections | a ${dialect} server that is away`, () => {
    test('a start rejects with the cause in bounded time, and nothing of it is there afterwards', async ({
      assert,
      cleanup,
    }) => {
      const database = await createDatabase(dialect)
      cleanup(database.cleanup)
      const direct = new LucidStateStore(database.db)
      await direct.ensureSchema()
      const { hostname, port } = new URL(backendUrl(dialect))
      const standard = dialect === 'postgres' ? 5432 : 3306
      const line = await TcpProxy.to({ host: hostname, port: Number(port) || standard })
      const { location } = database
      const db = openDatabase({ ...location, target: line.urlOf(location.target) })
      cleanup(async () => {
        await db.manager.closeAll()
        line.cut()
      })
      const engine = new WorkflowEngine({
        store: new LucidStateStore(db),
        transport: new InMemoryTransport(),
        logger: { warn: () => {}, error: () => {} },
      })
      engine.register('w', '1', async (_, input) => input)
      const completed = async (id: string) => {
        const run = await direct.getRun(id)
        return run?.status === 'completed' ? run : undefined
      }
      await engine.start('w', 'before', 'before')
      await until(() => completed('before'), 'the end of the first run')

      line.cut()
      const starts = ['a', 'b', 'c'].map((id) => engine.start('w', id, id))
      for (const settled of await Promise.allSettled(starts)) {
        assert.equal(settled.status, 'rejected')
        const { reason } = settled as PromiseRejectedResult
        assert.instanceOf(reason, StoreUnavailableError)
        assert.exists((reason as Error).cause)
      }
      assert.equal(await direct.countRuns({}), 1)

      await line.mend()
      await engine.start('w', 'again', 'a')
      const again = await until(() => completed('a'), 'the end of the second try')
      assert.equal(again.output, 'again')
      await engine.runPending()
      assert.equal(await direct.getRun('b'), null)
      await engine.drain(1000)
    })
      .tags(['@scenario-15'])
      .timeout(60_000)
  })
}
