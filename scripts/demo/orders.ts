/*
 * The orders of the demo, and what must become of each: the status of the order and of its run, every
 * position of the run's history, every entry of the ledger.
 */
import type { LedgerEntry } from './report.ts'

export interface Expected {
  what: string
  input: { id: string; item: string; cents: number; [more: string]: unknown }
  /** Of the order, and of its run. */
  status: string
  run: string
  history: ExpectedPosition[]
  ledger: LedgerEntry[]
}

export interface ExpectedPosition {
  name: string
  status: string
  /** The name under which its body notes that it runs. Sleeps and signals have none. */
  body?: string
  /** The worker is killed while this body runs. */
  killed?: boolean
}

const step = (name: string, more: Partial<ExpectedPosition> = {}): ExpectedPosition => ({
  name,
  status: 'completed',
  body: name,
  ...more,
})

const mark = (name: string): ExpectedPosition => ({ name, status: 'completed' })

const CHARGED = [step('payment:hold'), step('book charge')]
const SHIPPED = [
  step('payment:capture'),
  step('parcel:ship'),
  step('mark shipped'),
  step('mail receipt'),
]

const shipped = (
  what: string,
  input: Expected['input'],
  ...between: ExpectedPosition[]
): Expected => ({
  what,
  input,
  status: 'shipped',
  run: 'completed',
  history: [...CHARGED, ...between, ...SHIPPED],
  ledger: [{ kind: 'charge', cents: input.cents }],
})

const refunded = (what: string, input: Expected['input']): Expected => ({
  what,
  input,
  status: 'refunded',
  run: 'failed',
  history: [
    ...CHARGED,
    step('payment:capture', { status: 'failed' }),
    step('compensate:payment:hold', { body: 'payment:refund' }),
  ],
  ledger: [
    { kind: 'charge', cents: input.cents },
    { kind: 'refund', cents: -input.cents },
  ],
})

export const PLAIN = shipped('a plain order', { id: 'boots-1', item: 'boots', cents: 12_900 })

export const APPROVED = shipped(
  'waits for an approval',
  { id: 'piano-4', item: 'a piano', cents: 480_000 },
  mark('event:stage'),
  mark('timeout:approval:piano-4'),
  mark('signal:approval:piano-4'),
  mark('event:stage')
)

/** Its sleep is long enough to see one worker die and the next one begin. */
const ASLEEP = shipped(
  'a pre-order, which sleeps',
  { id: 'wine-5', item: 'wine', cents: 5400, shipAfterMs: 10_000 },
  mark('sleep')
)

export const BEFORE_THE_KILL = [
  PLAIN,
  shipped('another plain order', { id: 'socks-2', item: 'socks', cents: 900 }),
  refunded('its card is declined', {
    id: 'tent-3',
    item: 'a tent',
    cents: 24_900,
    card: 'tok_declined',
  }),
  APPROVED,
  ASLEEP,
]

/** The worker is killed while this one is wrapped. */
export const KILLED = shipped(
  'wrapped as a gift',
  { id: 'vase-6', item: 'a vase', cents: 7500, gift: true },
  step('parcel:wrap', { killed: true })
)

export const ALL = [...BEFORE_THE_KILL, KILLED]
