import { z } from 'zod'

/** What a customer sends, and the input of the checkout workflow. */
export const orderSchema = z.object({
  /** Chosen by the customer's browser: sending an order twice is one order. */
  id: z.string().regex(/^[a-z0-9-]{1,64}$/),
  item: z.string().min(1),
  cents: z.number().int().positive(),
  /** A token of the card, never its number: the input of a run is stored. */
  card: z.enum(['tok_good', 'tok_declined']).default('tok_good'),
  gift: z.boolean().default(false),
  /** A pre-order is shipped this much later. */
  shipAfterMs: z.number().int().nonnegative().default(0),
})

export type OrderInput = z.output<typeof orderSchema>

export const approvalSchema = z.object({
  approved: z.boolean(),
  by: z.string().min(1),
})

export type Approval = z.output<typeof approvalSchema>
