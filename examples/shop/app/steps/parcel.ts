import { setTimeout } from 'node:timers/promises'
import { defineStep } from '@adonis-agora/durable'
import { noted } from '#services/journal'
import env from '#start/env'
import type { OrderInput } from '#validators/order'

/** Takes its time: the demo kills the process in the middle of it. */
export const wrapGift = defineStep('parcel:wrap', (order: OrderInput, log) =>
  noted(order.id, 'parcel:wrap', async () => {
    log.info('wrapping', { item: order.item })
    await setTimeout(env.get('WRAPPING_MS', 3000))
    return { ribbon: 'red' }
  })
)

export const shipParcel = defineStep('parcel:ship', (order: OrderInput) =>
  noted(order.id, 'parcel:ship', () => ({ parcel: `parcel-${order.id}` }))
)
