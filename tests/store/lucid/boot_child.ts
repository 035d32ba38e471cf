/*
 * A process that provisions the database it is told and says how many warnings that took.
 */
import { createDurableTables } from '../../../src/store/lucid/schema/ensure.ts'
import { openDatabase } from '../../helpers/databases.ts'

process.once('message', async (location: Parameters<typeof openDatabase>[0]) => {
  const db = openDatabase(location)
  let warnings = 0
  await createDurableTables(db, undefined, { logger: { warn: () => void warnings++ } })
  await db.manager.closeAll()
  process.send!(warnings)
  process.disconnect()
})
