/*
 * Many processes that boot at the same moment on a database that has nothing yet.
 */
import { test } from '@japa/runner'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import { DURABLE_SCHEMA_META_TABLE } from '../../../src/store/lucid/schema/tables.ts'
import { catalogue } from '../../helpers/catalogue.ts'
import { createDatabase, reachableDialects } from '../../helpers/databases.ts'
import { disband, type Member, muster } from './crew.ts'

const PROCESSES = 10
const ROUNDS = 2

const dialects = await reachableDialects()

test.group('Processes that boot at once', (group) => {
  let crew: Member[] = []
  group.setup(async () => {
    crew = await muster(PROCESSES)
    return () => disband(crew)
  })
  group.each.timeout(120_000)

  for (const dialect of dialects) {
    test(`on an empty ${dialect}: one schema, no error, two statements the next time`, async ({
      assert,
      cleanup,
    }) => {
      const single = await createDatabase(dialect)
      cleanup(single.cleanup)
      await new LucidStateStore(single.db).ensureSchema()
      const expected = await catalogue(single)
      const marker = await single.db.from(DURABLE_SCHEMA_META_TABLE).select('id', 'fingerprint')
      assert.lengthOf(marker, 1)
      for (let round = 0; round < ROUNDS; round++) {
        const database = await createDatabase(dialect)
        cleanup(database.cleanup)
        const { location } = database
        await Promise.all(crew.map((member) => member.tell({ do: 'open', location })))
        const boots = await Promise.all(
          crew.map(async (member) => {
            const booted = member.next('booted')
            await member.tell({ do: 'boot' })
            return booted
          })
        )
        for (const { warnings, statements } of boots) {
          assert.deepEqual(warnings, [])
          assert.equal(statements, 2)
        }
        assert.deepEqual(await catalogue(database), expected)
        const found = await database.db.from(DURABLE_SCHEMA_META_TABLE).select('id', 'fingerprint')
        assert.deepEqual(found, marker)
      }
    })
  }

  test('all of them end well', async ({ assert }) => {
    assert.deepEqual(
      await Promise.all(crew.map((member) => member.leave())),
      crew.map(() => 0)
    )
    assert.deepEqual(
      crew.map(({ printed }) => printed),
      crew.map(() => '')
    )
  })
})
