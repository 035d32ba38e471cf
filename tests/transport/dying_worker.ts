/*
 * A worker process of the tests: serves `work` over a transport, and tells its parent of every pickup
 * before it goes on. `hang` never ends, `die` kills the process at once, `end` answers.
 */
import { BullMQTransport } from '../../src/transport/bullmq/bullmq_transport.ts'
import { DbTransport } from '../../src/transport/db/db_transport.ts'
import type { Serving, Transport } from '../../src/transport/ports.ts'
import { QueueTransport } from '../../src/transport/queue/queue_transport.ts'
import { openDatabase } from '../helpers/databases.ts'
import type { WorkerOrders } from './dying_workers.ts'
import { openAdapter } from './queue/bench.ts'

const orders = JSON.parse(process.argv[2]) as WorkerOrders
const transport = await open(orders)

transport.handle('work', async () => {
  await new Promise<void>((resolve) => process.send!('picked up', () => resolve()))
  if (orders.does === 'end') return `done by ${orders.name}`
  if (orders.does === 'die') process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
})
process.on('disconnect', () => process.exit(0))

async function open(how: WorkerOrders): Promise<Transport & Required<Serving>> {
  if (how.over === 'db') {
    return new DbTransport({ db: openDatabase(how.location), ...how.options })
  }
  if (how.over === 'bullmq') return BullMQTransport.create(how.options)
  const { adapter } = await openAdapter(how.backing)
  return new QueueTransport({ adapter, ...how.options })
}
