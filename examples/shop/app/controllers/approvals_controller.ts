import engine from '@adonis-agora/durable/services/main'
import type { HttpContext } from '@adonisjs/core/http'
import Order from '#models/order'
import { approvalSchema } from '#validators/order'
import { approvalToken } from '#workflows/checkout_workflow'

export default class ApprovalsController {
  /**
   * Kept until the run asks for it, should it come too early. If the run waits, its next turn executes
   * right here, and so do the steps of that turn: `drive: false` is about runs that are started.
   */
  async store({ params, request, response }: HttpContext) {
    const { data: approval, error } = approvalSchema.safeParse(request.body())
    if (!approval) return response.unprocessableEntity({ errors: error.issues })

    const order = await Order.findOrFail(params.id)
    await engine.signal(approvalToken(order.id), approval)
    return response.noContent()
  }
}
