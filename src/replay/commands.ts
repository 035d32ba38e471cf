/*
 * Commands: what a body asks the outside world to do, as data. Local ones carry their closure. A command
 * is performed by `turns/perform/*` whenever its await needs attention; what it does follows from the
 * rows at its positions, so performing it again is harmless.
 */
import type { EventMatch } from '../foundation/event_match.ts'
import type { SearchAttributes } from '../types/run.ts'
import type { StepLogger, StepOptions, StepDispatchOpts } from '../types/step.ts'

/** Runs a closure in process, at least once, and records its result. */
export interface LocalCommand {
  kind: 'local'
  seq: number
  name: string
  run: (log: StepLogger) => unknown
  options: StepOptions
}

/** Records a value computed in process; durable with the next effect, not before. */
export interface CaptureCommand {
  kind: 'capture'
  seq: number
  name: string
  /** Given the engine's clock. */
  compute: (now: number) => unknown
}

/** Runs a closure inside a store transaction that also records its result. */
export interface TransactionCommand {
  kind: 'transaction'
  seq: number
  name: string
  run: (tx: unknown) => unknown
}

/** Records a known value: markers, published values. */
export interface MarkCommand {
  kind: 'mark'
  seq: number
  name: string
  output: unknown
}

/** Dispatches a step. */
export interface CallCommand {
  kind: 'call'
  seq: number
  name: string
  input: unknown
  options: StepDispatchOpts
  /** Fan the call belongs to. */
  group?: string
}

/** Records a deadline: `afterMs` from when it is first performed, or `at` (epoch ms). */
export interface TimerCommand {
  kind: 'timer'
  seq: number
  name: string
  afterMs?: number
  at?: number
}

/** Waits for a payload on a token; `signalSeq` is its last position. */
export interface SignalCommand {
  kind: 'signal'
  seq: number
  signalSeq: number
  token: string
  timeoutMs?: number
}

/** Waits for a published event, also one that came before; `signalSeq` is its last position. */
export interface EventCommand {
  kind: 'event'
  seq: number
  signalSeq: number
  token: string
  name: string
  match?: EventMatch
  /** The match does not fit the token: the position's open row holds it. */
  hidden: boolean
  timeoutMs?: number
}

/** Hands work to somebody outside, once it is recorded that nobody has yet; then waits for the answer. */
export interface TaskCommand {
  kind: 'task'
  seq: number
  handOver: LocalCommand
  wait: SignalCommand
}

/** Pauses until somebody says to go on. The open row names the breakpoint. */
export interface BreakpointCommand {
  kind: 'breakpoint'
  seq: number
  name: string
  token: string
}

/** Sends an operation to an entity; with `replyTo`, waits for what it answers. */
export interface EntityCommand {
  kind: 'entity'
  seq: number
  /** Name of its row. */
  row: string
  name: string
  key: string
  op: string
  arg: unknown
  replyTo?: string
}

/** Merges search attributes into the run, in the commit that records it. */
export interface AttributesCommand {
  kind: 'attributes'
  seq: number
  attributes: SearchAttributes
}

/** Starts (or attaches to) a child run and waits for its end. */
export interface ChildCommand {
  kind: 'child'
  seq: number
  childId: string
  workflow: string
  input: unknown
  priority?: number
  /** Fan the child belongs to. */
  group?: string
}

/** Starts a child run without waiting for it. */
export interface SpawnCommand {
  kind: 'spawn'
  seq: number
  childId: string
  workflow: string
  input: unknown
  priority?: number
}

/** Many members over one range of positions, in waves. */
export interface FanCommand {
  kind: 'fan'
  seq: number
  group: string
  size: number
  failFast: boolean
  /** Index of the first member of the oldest wave that was not over when last looked at. */
  oldest: number
  /** Index of the first member that nobody has considered for folding. */
  folded: number
  /** Members a wave; waves that may be in flight together. */
  waveSize: number
  wavesAtOnce: number
  /** The command of one member, at position `seq + index`. */
  member(index: number): CallCommand | ChildCommand
}

export type Command =
  | LocalCommand
  | CaptureCommand
  | TransactionCommand
  | MarkCommand
  | CallCommand
  | TimerCommand
  | SignalCommand
  | EventCommand
  | TaskCommand
  | BreakpointCommand
  | EntityCommand
  | AttributesCommand
  | ChildCommand
  | SpawnCommand
  | FanCommand

export type CommandKind = Command['kind']
export type CommandOf<K extends CommandKind> = Extract<Command, { kind: K }>
