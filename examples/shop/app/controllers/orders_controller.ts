import type { HttpContext } from '@adonisjs/core/http'
import Order from '#models/order'
import { readJournal } from '#services/journal'
import { reportOf } from '#services/order_report'
import { orderSchema } from '#validators/order'
import CheckoutWorkflow, { checkoutRunId } from '#workflows/checkout_workflow'

export default class OrdersController {
  /** Answers as soon as the run is durable. Sent twice, an order is still one order and one run. */
  async store({ request, response }: HttpContext) {
    const { data: order, error } = orderSchema.safeParse(request.body())
    if (!order) return response.unprocessableEntity({ errors: error.issues })

    const { id, item, cents } = order
    await Order.firstOrCreate({ id }, { item, cents, status: 'placed' })
    const { runId } = await CheckoutWorkflow.dispatch(order, { runId: checkoutRunId(id) })
    return response.accepted({ runId })
  }

  async show({ params }: HttpContext) {
    return reportOf(await Order.findOrFail(params.id), await readJournal())
  }
}
