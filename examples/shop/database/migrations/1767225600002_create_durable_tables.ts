import { createDurableTables, dropDurableTables } from '@adonis-agora/durable'
import { BaseSchema } from '@adonisjs/lucid/schema'
import db from '@adonisjs/lucid/services/db'

/**
 * The tables of durable workflows. What they hold belongs to the package: after
 * an upgrade, a migration like this one brings them up to date.
 */
export default class extends BaseSchema {
  /**
   * The helper uses a connection and a transaction of its own. With a pool of
   * one, a transaction around it would wait for itself.
   */
  static disableTransactions = true

  async up() {
    await createDurableTables(db, this.db.connectionName)
  }

  async down() {
    await dropDurableTables(db, this.db.connectionName)
  }
}
