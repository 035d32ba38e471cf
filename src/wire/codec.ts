/*
 * One codec for every message. Emission is byte-stable: members in the order of `shapes.ts`, absent
 * optionals left out, unknown members after the known ones. Reading is tolerant: an optional member that
 * is null or of another type counts as absent, unknown members are kept, and only a message without its
 * identity is refused.
 */
import { DurableError } from '../foundation/failure.ts'
import { encodeJson } from '../foundation/json.ts'
import type {
  ControlMessage,
  Heartbeat,
  HeartbeatStatus,
  RemoteTask,
  RunDispatch,
  RunReply,
  RunRequest,
  StartRunMessage,
  StepResult,
  TenantEvent,
  WorkerDescriptor,
  WorkerStatus,
  WorkflowDecision,
  WorkflowStepEvent,
  WorkflowTask,
} from './messages.ts'
import { type Member, type Reading, SHAPES, type Shape } from './shapes.ts'

/** The message of each kind. */
export interface Messages {
  task: RemoteTask
  result: StepResult
  heartbeat: Heartbeat
  workflow: WorkflowTask
  decision: WorkflowDecision
  stepEvent: WorkflowStepEvent
  startRun: StartRunMessage
  runRequest: RunRequest
  runReply: RunReply
  tenantEvent: TenantEvent
  control: ControlMessage
  run: RunDispatch
  descriptor: WorkerDescriptor
  heartbeatStatus: HeartbeatStatus
}

export type MessageKind = keyof Messages

/** A message that cannot be read; whoever received it reports and drops it. */
export class WireFormatError extends DurableError {
  static override readonly code: string = 'wire_format'
}

type Raw = Record<string, unknown>

/** The JSON text of a message. Throws `UnstorableValueError` for a payload without JSON form. */
export function encode<K extends MessageKind>(kind: K, message: Messages[K]): string {
  return encodeJson(toWire(kind, message), `a ${kind} message`, Infinity) as string
}

/** A message as a plain object in emission order, for brokers that encode by themselves. */
export function toWire<K extends MessageKind>(kind: K, message: Messages[K]): Raw {
  return emit(SHAPES[kind], message as unknown as Raw)
}

/** The message in JSON text, or in what a broker parsed already. Throws `WireFormatError`. */
export function decode<K extends MessageKind>(kind: K, raw: unknown): Messages[K] {
  const value = typeof raw === 'string' ? parse(kind, raw) : raw
  if (!isObject(value)) throw new WireFormatError(`a ${kind} message must be a JSON object`)
  return read(SHAPES[kind], value, kind) as unknown as Messages[K]
}

/** Tells a turn from a step on their shared queue: by shape, never by job name. */
export function taskKindOf(raw: unknown): 'task' | 'workflow' {
  const value = typeof raw === 'string' ? parse('task', raw) : raw
  const isTurn =
    isObject(value) && typeof value.workflow === 'string' && Array.isArray(value.history)
  return isTurn ? 'workflow' : 'task'
}

/** What a worker's heartbeat key says. */
export interface WorkerBeat {
  /** 0 when it could not be read. */
  lastBeatAt: number
  status?: WorkerStatus
  descriptorHash?: string
}

/**
 * Reads any of the three forms of a worker-heartbeat value: with a status object, with a status word, or
 * a bare time. Never throws. A time below 1e12 is in seconds.
 */
export function readWorkerBeat(raw: unknown): WorkerBeat {
  const value = typeof raw === 'string' ? parseQuietly(raw) : raw
  if (!isObject(value)) return { lastBeatAt: asMilliseconds(value) }
  const beat: WorkerBeat = { lastBeatAt: asMilliseconds(value.ts) }
  if (isObject(value.status)) beat.status = value.status as unknown as WorkerStatus
  if (typeof value.descriptorHash === 'string') beat.descriptorHash = value.descriptorHash
  return beat
}

function asMilliseconds(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) return 0
  return value < 1e12 ? value * 1000 : value
}

function parse(kind: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new WireFormatError(`a ${kind} message is not JSON`, { cause })
  }
}

function parseQuietly(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isObject = (value: unknown): value is Raw =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function emit(shape: Shape, message: Raw): Raw {
  const out: Raw = {}
  for (const { name, as } of shape) {
    const value = message[name]
    if (value === undefined || (value === null && as !== 'any')) continue
    out[name] = emitMember(as, value)
  }
  return keepUnknown(shape, message, out)
}

function emitMember(as: Reading, value: unknown): unknown {
  if (typeof as === 'string') return value
  if ('object' in as) return isObject(value) ? emit(as.object, value) : value
  if (!Array.isArray(value)) return value
  return value.map((item: unknown) => (isObject(item) ? emit(as.list, item) : item))
}

function read(shape: Shape, message: Raw, where: string): Raw {
  const out: Raw = {}
  for (const member of shape) {
    const value = readMember(member, message[member.name], `${where}.${member.name}`)
    if (value !== undefined) out[member.name] = value
  }
  return keepUnknown(shape, message, out)
}

function readMember(member: Member, value: unknown, where: string): unknown {
  const known = value === undefined ? undefined : readAs(member.as, value, where)
  if (known !== undefined || !member.required) return known
  if (member.missing !== undefined) return structuredClone(member.missing)
  throw new WireFormatError(
    `${where} is ${value === undefined ? 'missing' : 'not what it should be'}`
  )
}

/** The value as `as` wants it; undefined for one of another type. */
function readAs(as: Reading, value: unknown, where: string): unknown {
  if (typeof as === 'object') {
    if ('list' in as) return Array.isArray(value) ? readList(as, value, where) : undefined
    if (isObject(value)) return read(as.object, value, where)
    // Some peers send an error as its bare message.
    return typeof value === 'string' && as.object[0].name === 'message'
      ? { message: value }
      : undefined
  }
  switch (as) {
    case 'any':
      return value
    case 'text':
      return typeof value === 'string' ? value : undefined
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? value : undefined
    case 'flag':
      return typeof value === 'boolean' ? value : undefined
    case 'texts':
      return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : undefined
    case 'date':
      return readDate(value)
  }
}

function readList(as: { list: Shape; skipBroken?: true }, values: unknown[], where: string): Raw[] {
  const out: Raw[] = []
  values.forEach((value, index) => {
    try {
      if (!isObject(value)) throw new WireFormatError(`${where}[${index}] is not an object`)
      out.push(read(as.list, value, `${where}[${index}]`))
    } catch (error) {
      if (!as.skipBroken) throw error
    }
  })
  return out
}

function readDate(value: unknown): Date | undefined {
  const date =
    value instanceof Date || typeof value === 'string' || typeof value === 'number'
      ? new Date(value)
      : undefined
  return date && !Number.isNaN(date.getTime()) ? date : undefined
}

function keepUnknown(shape: Shape, message: Raw, out: Raw): Raw {
  for (const [name, value] of Object.entries(message)) {
    // A member of this name would change the prototype instead of the message.
    if (name === '__proto__' || shape.some((member) => member.name === name)) continue
    out[name] = value
  }
  return out
}
