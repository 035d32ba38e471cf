/*
 * Several processes that execute runs over one SQLite file. `npm test` does it with few runs;
 * `RUNS=2000` is the full size.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createDatabase } from '../../helpers/databases.ts'
import { disband, muster } from './crew.ts'
import { createLedger, LEDGER, LINES, OUTPUT } from './five_steps.ts'

const PROCESSES = 4
const RUNS = Number(process.env.RUNS ?? 160)
const PATIENCE_MS = 20_000 + RUNS * 300

test.group('Processes on one SQLite file', () => {
  test(`${PROCESSES} of them complete ${RUNS} runs of five steps, and none hears of a busy file`, async ({
    assert,
    cleanup,
  }) => {
    const database = await createDatabase('sqlite')
    cleanup(database.cleanup)
    const { db, location } = database
    const store = new LucidStateStore(db)
    await store.ensureSchema()
    await createLedger(db)
    const folder = await mkdtemp(join(tmpdir(), 'durable-effects-'))
    cleanup(() => rm(folder, { recursive: true, force: true }))
    const effects = join(folder, 'effects')
    const crew = await muster(PROCESSES)
    cleanup(() => disband(crew))

    const shares = crew.map((_, part) =>
      Array.from({ length: RUNS }, (_unused, n) => `run-${n}`).filter(
        (_id, n) => n % PROCESSES === part
      )
    )
    await Promise.all(
      crew.map(async (member, part) => {
        await member.tell({ do: 'open', location })
        await member.tell({ do: 'work', name: `p${part}`, effects, hang: false, leaseMs: 30_000 })
      })
    )
    await Promise.all(
      crew.map((member, part) => member.tell({ do: 'start', runIds: shares[part] }))
    )
    const giveUpAt = performance.now() + PATIENCE_MS
    const ended = () => store.countRuns({ statuses: ['completed', 'failed', 'dead', 'cancelled'] })
    while ((await ended()) < RUNS && performance.now() < giveUpAt) await pause(100)
    const codes = await Promise.all(crew.map((member) => member.leave()))

    const runs = await store.listRuns({})
    assert.lengthOf(runs, RUNS)
    for (const run of runs) {
      assert.equal(run.status, 'completed', JSON.stringify(run))
      assert.deepEqual(run.output, OUTPUT)
      assert.notProperty(run, 'lockedBy')
      const rows = await store.listCheckpoints(run.id)
      assert.lengthOf(rows, OUTPUT.length)
      for (const row of rows) {
        assert.equal(row.status, 'completed')
        assert.notProperty(row, 'error')
        assert.equal(row.attempts, 1)
      }
    }
    const booked = await db.from(LEDGER).select('run_id')
    assert.lengthOf(booked, RUNS)
    assert.lengthOf(new Set(booked.map(({ run_id: id }) => String(id))), RUNS)
    const written = await readFile(effects, 'utf8')
    const lines = written.trimEnd().split('\n')
    assert.lengthOf(new Set(lines), RUNS * LINES.length)
    const logged = crew.flatMap((member) => member.logged)
    assert.deepEqual(
      logged.filter((line) => /busy|locked|failed/i.test(line)),
      []
    )
    assert.deepEqual(
      crew.map(({ printed }) => printed),
      crew.map(() => '')
    )
    assert.deepEqual(
      codes,
      crew.map(() => 0)
    )
    const again = lines.length - RUNS * LINES.length
    console.log(`      ${RUNS} runs, ${lines.length} effects, ${again} of them a second time`)
  }).timeout(PATIENCE_MS + 60_000)
})
