import { defineStep, FatalError, type UndoOf } from '@adonis-agora/durable'
import LedgerEntry from '#models/ledger_entry'
import Order from '#models/order'
import { noted } from '#services/journal'
import type { OrderInput } from '#validators/order'

/** Asks the bank to set the money aside. */
export const holdPayment = defineStep(
  'payment:hold',
  (order: OrderInput) => noted(order.id, 'payment:hold', () => ({ holdId: `hold-${order.id}` })),
  { retries: 5, backoff: 'exp', backoffMs: 200 }
)

/** Collects the money that was set aside. A bank that declines will decline again: no retry. */
export const capturePayment = defineStep(
  'payment:capture',
  (order: OrderInput) =>
    noted(order.id, 'payment:capture', () => {
      if (order.card === 'tok_declined') throw new FatalError('card declined', 'card_declined')
      return { captured: order.cents }
    }),
  { retries: 5, backoff: 'exp', backoffMs: 200 }
)

/**
 * Undoes the hold: gives back what was booked, if anything was. Like every step it runs at least once,
 * so it writes under a reference that can be there only once.
 */
export const refundPayment = defineStep(
  'payment:refund',
  ({ input: order, output: hold }: UndoOf<typeof holdPayment>) =>
    noted(order.id, 'payment:refund', async () => {
      const charge = await LedgerEntry.findBy({ orderId: order.id, kind: 'charge' })
      if (!charge) return { refunded: 0 }
      await LedgerEntry.firstOrCreate(
        { reference: `refund:${hold.holdId}` },
        { orderId: order.id, kind: 'refund', cents: -charge.cents }
      )
      await Order.query().where('id', order.id).update({ status: 'refunded' })
      return { refunded: charge.cents }
    }),
  { retries: 5, backoff: 'exp', backoffMs: 200 }
)
