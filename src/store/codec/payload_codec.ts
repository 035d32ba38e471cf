/*
 * The codec of an application, and the two acts around it: what is never given to it, what marks a value
 * that may also be stored in the clear, and the error that says which payload it failed on.
 */
import { PayloadCodecError } from '../../errors.ts'
import { messageOf } from '../../foundation/failure.ts'

/**
 * Turns payloads into what is stored, and back. `decode` is the exact inverse of `encode`, for every value
 * ever encoded. What `encode` answers must be JSON: bytes as base64 text. `undefined` is never given to it,
 * `null` is. Both may answer a promise; a codec that throws or rejects fails the call of the store.
 */
export interface PayloadCodec {
  encode(value: unknown): unknown
  decode(value: unknown): unknown
}

export interface CodecStoreOptions {
  /**
   * `payloads` (the default): inputs and outputs of runs and steps, payloads of signals and events, specs
   * of schedules. `extended`: besides them errors, log lines of steps and heartbeat progress. It may be
   * changed at any time; rows written before are still read.
   */
  coverage?: 'payloads' | 'extended'
}

/** Whose payload it is. */
export interface Place {
  runId?: string
  seq?: number
  /** What it belongs to when that is no run: `signal "go"`. */
  of?: string
}

/** `extended` fields are wrapped, so that a row tells whether it was written in the clear. */
export type PayloadKind = 'payload' | 'extended'

/** The only key of a wrapped value. */
const ENCODED = '@agora/durable:encoded'

export class Payloads {
  readonly #codec: PayloadCodec
  readonly #extended: boolean

  constructor(codec: PayloadCodec, { coverage = 'payloads' }: CodecStoreOptions) {
    this.#codec = codec
    this.#extended = coverage === 'extended'
  }

  /** What to store for a value; throws `PayloadCodecError`. */
  async encode(value: unknown, kind: PayloadKind, field: string, place: Place): Promise<unknown> {
    // What has no JSON form is stored as nothing, whatever the codec would make of it.
    if (typeof value === 'function' || typeof value === 'symbol') return undefined
    if (kind === 'extended' && !this.#extended) return value
    const encoded = await attempt(() => this.#codec.encode(value), 'encoded', field, place)
    if (encoded === undefined) {
      const cause = new TypeError('encode answered undefined, which cannot be stored')
      throw failure('encoded', field, place, cause)
    }
    return kind === 'extended' ? { [ENCODED]: encoded } : encoded
  }

  /** The value that was stored; throws `PayloadCodecError`. */
  async decode(stored: unknown, kind: PayloadKind, field: string, place: Place): Promise<unknown> {
    if (kind === 'extended' && !isWrapped(stored)) return stored
    const encoded = kind === 'extended' ? (stored as Record<string, unknown>)[ENCODED] : stored
    return attempt(() => this.#codec.decode(encoded), 'decoded', field, place)
  }
}

function isWrapped(stored: unknown): boolean {
  if (typeof stored !== 'object' || stored === null) return false
  const keys = Object.keys(stored)
  return keys.length === 1 && keys[0] === ENCODED
}

type Act = 'encoded' | 'decoded'

async function attempt(
  work: () => unknown,
  act: Act,
  field: string,
  place: Place
): Promise<unknown> {
  try {
    return await work()
  } catch (cause) {
    throw failure(act, field, place, cause)
  }
}

function failure(act: Act, field: string, place: Place, cause: unknown): PayloadCodecError {
  const { runId, seq, of } = place
  const position = seq === undefined ? '' : `, position ${seq}`
  const whose = runId === undefined ? of : `run ${runId}${position}`
  return new PayloadCodecError(
    `${whose === undefined ? '' : `${whose}: `}the ${field} cannot be ${act} by the payload codec: ` +
      messageOf(cause).split('\n')[0],
    { runId, seq, cause }
  )
}
