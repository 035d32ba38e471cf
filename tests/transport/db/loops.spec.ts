/*
 * How often a db transport looks at tables that are empty: less and less often for work, never for what
 * somebody waits for.
 */
import { test } from '@japa/runner'
import { createDurableTransportTables } from '../../../src/transport/db/schema.ts'
import { TRANSPORT_TABLES as T } from '../../../src/transport/db/tables.ts'
import { countStatements } from '../../helpers/databases.ts'
import { dbBench } from './bench.ts'
import { processOf } from './processes.ts'

test.group('db | idle loops', () => {
  for (const [idleBackoffMax, looks] of [
    // At once, after 200 and 400 ms, then every 800: anew with each sweep of lapsed claims, every 10 s.
    [4, 6 * 14],
    [1, 300],
  ]) {
    test(`idleBackoffMax ${idleBackoffMax}: ${looks} looks for tasks in a minute, 300 for results`, async ({
      assert,
      cleanup,
    }) => {
      // SQLite answers at once: no look is late.
      const bench = await dbBench('sqlite')
      cleanup(() => bench.cleanup())
      await createDurableTransportTables(bench.database.db)
      const { transport, time } = processOf(bench, { idleBackoffMax })
      transport.handle('work', () => null)
      transport.onResult(async () => {})
      await time.advance(10_000)
      const counter = countStatements(bench.database.db)
      await time.advance(60_000)
      const looksAt = (table: string) =>
        counter.texts.filter((text) => text.startsWith(`UPDATE ${table} SET claimed_by = ?`)).length
      const found = { tasks: looksAt(T.tasks), results: looksAt(T.results) }
      counter.stop()
      assert.deepEqual(found, { tasks: looks, results: 300 })
    })
  }
})
