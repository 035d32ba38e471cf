/*
 * Walks a shape and encodes or decodes the payloads it names. Answers copies; what it was given is left
 * as it is. An absent payload stays absent.
 */
import { mapBounded } from '../../foundation/pool.ts'
import type { Payloads, Place } from './payload_codec.ts'
import type { ObjectShape, Shape } from './shapes.ts'

/** Rows that are given to a codec at once: one that asks a remote service is not to be flooded. */
const AT_ONCE = 32

export interface Conversion {
  payloads: Payloads
  act: 'encode' | 'decode'
  /** Called for a payload that fails, which is then left out; without it the failure is thrown. */
  onFailure?: (error: unknown) => void
}

/** The value with its payloads encoded or decoded; throws `PayloadCodecError`. */
export async function convert(
  shape: Shape,
  value: unknown,
  conversion: Conversion,
  place: Place = {},
  field = 'payload'
): Promise<unknown> {
  if (shape === 'clear' || value === undefined) return value
  if (shape === 'payload' || shape === 'extended') {
    const { payloads, act } = conversion
    return payloads[act](value, shape, field, place)
  }
  if (value === null) return null
  if (shape.kind === 'object') return convertObject(shape, value, conversion, place)
  const outcomes = await mapBounded(value as unknown[], AT_ONCE, (one) =>
    convertObject(shape.of, one, conversion, place)
  )
  return outcomes.map((outcome) => {
    if (!outcome.ok) throw outcome.error
    return outcome.value
  })
}

async function convertObject(
  shape: ObjectShape,
  value: unknown,
  conversion: Conversion,
  outer: Place
): Promise<unknown> {
  const whole = value as Record<string, unknown>
  const own = shape.place?.(whole as never)
  // A patch does not carry the id of what it patches.
  const place = own?.runId === undefined && own?.of === undefined ? outer : own
  const copy = { ...whole }
  for (const [name, of] of shape.fields) {
    if (whole[name] === undefined) continue
    try {
      copy[name] = await convert(of, whole[name], conversion, place, name)
    } catch (error) {
      if (!conversion.onFailure) throw error
      conversion.onFailure(error)
      delete copy[name]
    }
  }
  return copy
}
