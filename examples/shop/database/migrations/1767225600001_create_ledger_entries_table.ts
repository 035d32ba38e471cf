import { BaseSchema } from '@adonisjs/lucid/schema'

export default class extends BaseSchema {
  protected tableName = 'ledger_entries'

  async up() {
    this.schema.createTable(this.tableName, (table) => {
      table.increments('id')
      // Nothing here forbids a second charge of an order: that there is none is the workflow's doing.
      table.string('order_id', 64).notNullable().references('orders.id').index()
      table.string('kind').notNullable()
      table.integer('cents').notNullable()
      table.string('reference').nullable().unique()
      table.timestamp('created_at').notNullable()
    })
  }

  async down() {
    this.schema.dropTable(this.tableName)
  }
}
