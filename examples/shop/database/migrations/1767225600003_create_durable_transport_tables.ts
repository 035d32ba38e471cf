import { createDurableTransportTables, dropDurableTransportTables } from '@adonis-agora/durable'
import { BaseSchema } from '@adonisjs/lucid/schema'
import db from '@adonisjs/lucid/services/db'

/** The tables over which the db transport carries steps. Whoever uses another transport needs none. */
export default class extends BaseSchema {
  /** As with the tables of the store: the helper uses a transaction of its own. */
  static disableTransactions = true

  async up() {
    await createDurableTransportTables(db, this.db.connectionName)
  }

  async down() {
    await dropDurableTransportTables(db, this.db.connectionName)
  }
}
