import engine from '@adonis-agora/durable/services/main'
import Order from '#models/order'
import { readJournal } from '#services/journal'
import { reportOf } from '#services/order_report'

export default class ReportsController {
  async index() {
    const journal = await readJournal()
    const orders = await Order.query().orderBy('createdAt').orderBy('id')
    return {
      orders: await Promise.all(orders.map((order) => reportOf(order, journal))),
      runs: await engine.countRuns(),
      unfinished: await engine.countRuns({ statuses: ['pending', 'running', 'suspended'] }),
    }
  }
}
