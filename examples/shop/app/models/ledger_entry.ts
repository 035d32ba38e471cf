import type { DateTime } from 'luxon'
import { BaseModel, column } from '@adonisjs/lucid/orm'

/** Money that moved. */
export default class LedgerEntry extends BaseModel {
  @column({ isPrimary: true })
  declare id: number

  @column()
  declare orderId: string

  @column()
  declare kind: 'charge' | 'refund'

  @column()
  declare cents: number

  /** Unique. Set by a writer that may run twice for the same thing; null where that cannot happen. */
  @column()
  declare reference: string | null

  @column.dateTime({ autoCreate: true })
  declare createdAt: DateTime
}
