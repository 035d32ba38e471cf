/*
 * What a db transport looks after by itself: how many tasks run at once, and rows that nobody will take.
 */
import { test } from '@japa/runner'
import { Session } from '../../../src/sql/session.ts'
import { TableKeys } from '../../../src/transport/db/keys.ts'
import { insertMessage } from '../../../src/transport/db/messages.ts'
import { insertBeats } from '../../../src/transport/db/results.ts'
import { TRANSPORT_TABLES as T } from '../../../src/transport/db/tables.ts'
import { DEFAULT_PREFIX, keyNames } from '../../../src/wire/names.ts'
import { CONNECTION, reachableDialects } from '../../helpers/databases.ts'
import { T0 } from '../../helpers/fake_time.ts'
import { ADAPTIVE, growsAndShrinks } from '../adaptive.ts'
import { dbBench } from './bench.ts'
import { pass, processOf, rowsOf } from './processes.ts'

for (const dialect of await reachableDialects()) {
  test.group(`Adaptive concurrency of the db transport | ${dialect}`, (group) => {
    group.each.timeout(60_000)

    test('the limit grows while steps go well, shrinks when they fail, and bounds what runs', async ({
      assert,
      cleanup,
    }) => {
      const bench = await dbBench(dialect)
      cleanup(() => bench.cleanup())
      const engine = await bench.session()
      await growsAndShrinks(assert, engine, bench.open({ ...ADAPTIVE, leaseMs: 60_000 }))
    })
  })

  test.group(`The janitor of the db transport | ${dialect}`, (group) => {
    group.each.timeout(60_000)

    const HOUR = 3_600_000

    test('messages to who is gone are deleted in time; others stay, those of other namespaces too', async ({
      assert,
      cleanup,
    }) => {
      const bench = await dbBench(dialect)
      cleanup(() => bench.cleanup())
      const plane = processOf(bench, { inboxTtlMs: 60_000, inboxSweepIntervalMs: 10_000 })
      const { db } = bench.database
      const session = new Session(db, CONNECTION)
      plane.transport.onStartRun(async () => {})
      await plane.transport.dispatchStepEvent({
        runId: 'of nobody in particular',
        seq: 0,
        name: 'x',
        phase: 'running',
        startedAt: 1,
      })
      const keys = new TableKeys(session, plane.time.clock, async () => {})
      await keys.set(keyNames(DEFAULT_PREFIX).inbox('here'), '{}', HOUR)
      await keys.set(keyNames(DEFAULT_PREFIX, 'y').inbox('of y'), '{}', HOUR)
      await keys.set('an expired key', '{}', 1_000)
      for (const [namespace, recipient] of [
        ['default', 'gone'],
        ['default', 'here'],
        ['y', 'of y'],
      ]) {
        const message = {
          id: recipient,
          namespace,
          recipient,
          payload: '{}',
          nowMs: plane.time.now,
        }
        await insertMessage(session, { ...message, kind: 'runReply' })
      }
      const recipients = async () => {
        const rows = await rowsOf(bench, T.messages)
        return rows.map((row) => row.recipient).sort()
      }
      await pass([plane], 'the expired key', async () => {
        const rows = await rowsOf(bench, T.workerKeys)
        return rows.every((row) => row.key_name !== 'an expired key')
      })
      await plane.time.advance(T0 + 50_000 - plane.time.now)
      assert.includeMembers(await recipients(), ['gone'])
      await pass([plane], 'the deletion', async () => {
        const left = await recipients()
        return !left.includes('gone')
      })
      assert.isAbove(plane.time.now, T0 + 60_000)
      assert.sameMembers(await recipients(), [null, 'here', 'of y'])
      const left = await rowsOf(bench, T.workerKeys)
      assert.includeMembers(
        left.map((row) => row.key_name),
        [keyNames(DEFAULT_PREFIX).inbox('here'), keyNames(DEFAULT_PREFIX, 'y').inbox('of y')]
      )
    })

    test('beats that nobody took are deleted after a minute, in their namespace', async ({
      assert,
      cleanup,
    }) => {
      const bench = await dbBench(dialect)
      cleanup(() => bench.cleanup())
      const engine = processOf(bench)
      engine.transport.onResult(async () => {})
      await engine.transport.dispatch(engine.session.task('unserved', null))
      const session = new Session(bench.database.db, CONNECTION)
      const beat = { runId: 'r', seq: 0, stepId: 'r:0', group: 'work' }
      const nowMs = engine.time.now
      await insertBeats(session, [beat], { namespace: 'default', nowMs })
      await insertBeats(session, [beat], { namespace: 'y', nowMs })
      await engine.time.advance(50_000)
      assert.lengthOf(await rowsOf(bench, T.heartbeats), 2)
      await pass([engine], 'the deletion', async () => {
        const rows = await rowsOf(bench, T.heartbeats)
        return rows.length === 1
      })
      const [{ namespace }] = await rowsOf(bench, T.heartbeats)
      assert.equal(namespace, 'y')
      assert.isAbove(engine.time.now, nowMs + 60_000)
    })
  })
}
