import { BaseWorkflow, FatalError, type WorkflowCtx } from '@adonis-agora/durable'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import LedgerEntry from '#models/ledger_entry'
import Order from '#models/order'
import { noted } from '#services/journal'
import { shipParcel, wrapGift } from '#steps/parcel'
import { capturePayment, holdPayment, refundPayment } from '#steps/payment'
import { type Approval, type OrderInput, orderSchema } from '#validators/order'

const APPROVED_BY_HAND_FROM_CENTS = 100_000
const THREE_DAYS_MS = 3 * 24 * 60 * 60 * 1000

/** Both follow from the order, so that everybody can name the run and signal it. */
export const checkoutRunId = (orderId: string) => `checkout:${orderId}`
export const approvalToken = (orderId: string) => `approval:${orderId}`

export default class CheckoutWorkflow extends BaseWorkflow {
  static workflow = { name: 'checkout', version: '1', tags: ['shop'], inputSchema: orderSchema }

  async run(ctx: WorkflowCtx, order: OrderInput) {
    // From here on a failure, wherever it happens, refunds the customer.
    await ctx.step(holdPayment, order, { compensate: refundPayment })

    await ctx.transaction('book charge', (tx) => bookCharge(order, tx as TransactionClientContract))

    if (order.cents >= APPROVED_BY_HAND_FROM_CENTS) await approval(ctx, order)
    if (order.gift) await ctx.step(wrapGift, order)
    if (order.shipAfterMs > 0) await ctx.sleep(order.shipAfterMs)

    await ctx.step(capturePayment, order)
    const { parcel } = await ctx.step(shipParcel, order)
    await ctx.transaction('mark shipped', (tx) =>
      markShipped(order, tx as TransactionClientContract)
    )
    await ctx.localStep('mail receipt', () => noted(order.id, 'mail receipt', () => {}))
    return { parcel }
  }
}

/**
 * Takes effect exactly once, because it commits together with the record that it ran. Everything goes
 * through `trx`. On SQLite anything else would wait for the one connection, which the transaction has.
 */
function bookCharge(order: OrderInput, trx: TransactionClientContract): Promise<void> {
  return noted(order.id, 'book charge', async () => {
    const charge = { orderId: order.id, kind: 'charge', cents: order.cents } as const
    await LedgerEntry.create(charge, { client: trx })
    await Order.query({ client: trx }).where('id', order.id).update({ status: 'charged' })
  })
}

function markShipped(order: OrderInput, trx: TransactionClientContract): Promise<void> {
  return noted(order.id, 'mark shipped', async () => {
    await Order.query({ client: trx }).where('id', order.id).update({ status: 'shipped' })
  })
}

/** A refusal fails the run, and so does nobody answering for three days. Both refund. */
async function approval(ctx: WorkflowCtx, order: OrderInput): Promise<void> {
  await ctx.setEvent('stage', 'waits for approval')
  const { approved, by } = await ctx.waitForSignal<Approval>(approvalToken(order.id), {
    timeoutMs: THREE_DAYS_MS,
  })
  if (!approved) throw new FatalError(`refused by ${by}`, 'order_refused')
  await ctx.setEvent('stage', `approved by ${by}`)
}
