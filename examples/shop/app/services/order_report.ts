import engine from '@adonis-agora/durable/services/main'
import type Order from '#models/order'
import type { JournalLine } from '#services/journal'
import { checkoutRunId } from '#workflows/checkout_workflow'

/** Everything there is to know about an order: its run, the run's history, its money. */
export async function reportOf(order: Order, journal: JournalLine[]) {
  const runId = checkoutRunId(order.id)
  const run = await engine.getRun(runId)
  const steps = await engine.listCheckpoints(runId)
  const ledger = await order.related('ledger').query().orderBy('id')
  return {
    id: order.id,
    item: order.item,
    cents: order.cents,
    status: order.status,
    /** What the run published with `ctx.setEvent`. */
    stage: await engine.getEvent<string>(runId, 'stage'),
    run: run && {
      id: run.id,
      status: run.status,
      error: run.error?.message,
      lockedBy: run.lockedBy,
    },
    steps: steps.map(({ seq, name, kind, status, error }) => ({
      seq,
      name,
      kind,
      status,
      error: error?.message,
    })),
    ledger: ledger.map(({ kind, cents }) => ({ kind, cents })),
    bodies: bodiesOf(order.id, journal),
  }
}

/** The bodies that began for an order, with the process of every execution. */
function bodiesOf(orderId: string, journal: JournalLine[]): Record<string, string[]> {
  const bodies: Record<string, string[]> = {}
  for (const { event, order, body, process } of journal) {
    if (event === 'begin' && order === orderId) (bodies[body] ??= []).push(process)
  }
  return bodies
}
