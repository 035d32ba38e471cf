import type { DateTime } from 'luxon'
import { BaseModel, column, hasMany } from '@adonisjs/lucid/orm'
import type { HasMany } from '@adonisjs/lucid/types/relations'
import LedgerEntry from '#models/ledger_entry'

export default class Order extends BaseModel {
  static selfAssignPrimaryKey = true

  @column({ isPrimary: true })
  declare id: string

  @column()
  declare item: string

  @column()
  declare cents: number

  @column()
  declare status: 'placed' | 'charged' | 'shipped' | 'refunded'

  @column.dateTime({ autoCreate: true })
  declare createdAt: DateTime

  @hasMany(() => LedgerEntry)
  declare ledger: HasMany<typeof LedgerEntry>
}
