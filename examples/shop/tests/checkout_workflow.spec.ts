/*
 * The checkout survives a crash at every write of its history: `npm test`. The application is booted for
 * what the workflow imports; every step is a fake, so no database is opened and nobody waits.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Ignitor } from '@adonisjs/core'
import { FatalError } from '@adonis-agora/durable'
import { assertSurvivesCrashes, type ExploreOptions } from '@adonis-agora/durable/testing'
import type { OrderInput } from '#validators/order'

const APP_ROOT = new URL('../', import.meta.url)

const app = new Ignitor(APP_ROOT, { importer: (path) => import(path) }).createApp('test')

before(async () => {
  await app.init()
  await app.boot()
})
after(() => app.terminate())

/** A bank, a warehouse and a ledger that keep count. */
const world = {
  holds: 0,
  refunds: 0,
  parcels: 0,
  hold: () => ({ holdId: `hold-${++world.holds}` }),
  refund: () => ({ refunded: ++world.refunds }),
  ship: () => ({ parcel: `parcel-${++world.parcels}` }),
}

const FAKES = {
  'payment:hold': () => world.hold(),
  'payment:refund': () => world.refund(),
  'payment:capture': (order: OrderInput) => ({ captured: order.cents }),
  'parcel:wrap': () => ({ ribbon: 'red' }),
  'parcel:ship': () => world.ship(),
  'book charge': () => {},
  'mark shipped': () => {},
  'mail receipt': () => {},
}

const order = {
  id: '7',
  item: 'boots',
  cents: 12_900,
  card: 'tok_good',
  gift: false,
  shipAfterMs: 0,
} as OrderInput

async function checkout(changes: Partial<OrderInput>, options: ExploreOptions = {}) {
  const { default: CheckoutWorkflow, checkoutRunId } = await import('#workflows/checkout_workflow')
  return assertSurvivesCrashes(
    CheckoutWorkflow,
    { ...order, ...changes },
    {
      runId: checkoutRunId(order.id),
      steps: FAKES,
      effects: { world },
      setup: () => Object.assign(world, { holds: 0, refunds: 0, parcels: 0 }),
      ...options,
    }
  )
}

test('an order is shipped', async () => {
  const { end } = await checkout({})
  assert.deepEqual(end.output, { parcel: 'parcel-1' })
})

test('a gift is wrapped, a pre-order sleeps', async () => {
  const { end } = await checkout({ gift: true, shipAfterMs: 60_000 })
  assert.equal(end.status, 'completed')
})

test('an expensive order waits for an approval', async () => {
  const { end } = await checkout(
    { cents: 480_000 },
    { signals: { 'approval:7': { approved: true, by: 'ada' } } }
  )
  assert.equal(end.status, 'completed')
})

test('a refusal refunds', async () => {
  const { end } = await checkout(
    { cents: 480_000 },
    { signals: { 'approval:7': { approved: false, by: 'ada' } } }
  )
  assert.deepEqual(end.error, { message: 'refused by ada', code: 'order_refused' })
  assert.ok(world.refunds > 0)
})

test('an approval that nobody gives refunds after three days', async () => {
  const { end } = await checkout({ cents: 480_000 })
  assert.equal(end.error?.code, 'signal_timeout')
})

test('a declined card refunds', async () => {
  const { end } = await checkout(
    {},
    {
      steps: {
        ...FAKES,
        'payment:capture': () => {
          throw new FatalError('card declined', 'card_declined')
        },
      },
    }
  )
  assert.equal(end.error?.code, 'card_declined')
})
