/*
 * A process that is killed in the middle of a step, and the next one over the same data.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { createDatabase, reachableDialects } from '../../helpers/databases.ts'
import { until } from '../../helpers/until.ts'
import { disband, type Member, muster } from './crew.ts'
import { createLedger } from './five_steps.ts'

const dialects = await reachableDialects()

const leaseMs = 2000

test.group('A process killed in a step', (group) => {
  let crew: Member[] = []
  group.setup(async () => {
    crew = await muster(dialects.length * 2)
    return () => disband(crew)
  })
  group.each.timeout(60_000)

  for (const [place, dialect] of dialects.entries()) {
    test(`on ${dialect}: the next one runs that step again and keeps the earlier ones`, async ({
      assert,
      cleanup,
    }) => {
      const [doomed, next] = crew.slice(place * 2)
      const database = await createDatabase(dialect)
      cleanup(database.cleanup)
      const store = new LucidStateStore(database.db)
      await store.ensureSchema()
      await createLedger(database.db)
      const folder = await mkdtemp(join(tmpdir(), 'durable-effects-'))
      cleanup(() => rm(folder, { recursive: true, force: true }))
      const effects = join(folder, 'effects')
      const linesOf = async () => {
        const written = await readFile(effects, 'utf8')
        return written.trimEnd().split('\n')
      }

      await doomed.tell({ do: 'open', location: database.location })
      await doomed.tell({ do: 'work', name: 'doomed', effects, hang: true, leaseMs })
      await doomed.tell({ do: 'hang', runId: 'r' })
      const inside = async () => {
        const rows = await store.listCheckpoints('r')
        const lines = rows[0]?.status === 'completed' ? await linesOf() : []
        return lines.includes('r second')
      }
      await until(inside, 'the second step to begin')
      await doomed.kill()

      await next.tell({ do: 'open', location: database.location })
      await next.tell({ do: 'work', name: 'next', effects, hang: false, leaseMs })
      const over = async () => {
        const run = await store.getRun('r')
        return run?.status === 'completed' ? run : undefined
      }
      const run = await until(over, 'the run to end')
      assert.deepEqual(run.output, ['first', 'second'])
      assert.deepEqual(await linesOf(), ['r first', 'r second', 'r second'])
      assert.equal(await next.leave(), 0)
      const released = await store.getRun('r')
      assert.notProperty(released, 'lockedBy')
    }).tags(['@scenario-4'])
  }
})
