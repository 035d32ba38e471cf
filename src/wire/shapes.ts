/*
 * The members of every message as data: order of emission, how tolerantly each is read, what stands in
 * for a missing one. `codec.ts` walks these tables; the types of the same messages are in `messages.ts`.
 */

/** How a member is read. A shape is an object, a list of one holds objects of it. */
export type Reading =
  | 'text'
  | 'number'
  | 'flag'
  | 'texts'
  /** Any JSON, null included. */
  | 'any'
  /** ISO text on the wire, a `Date` in memory. */
  | 'date'
  | { object: Shape }
  | { list: Shape; skipBroken?: true }

export interface Member {
  name: string
  as: Reading
  /** A message without it cannot be read, unless `missing` stands in. */
  required?: true
  missing?: unknown
}

export type Shape = readonly Member[]

const must = (name: string, as: Reading): Member => ({ name, as, required: true })
const may = (name: string, as: Reading): Member => ({ name, as })
/** Required of writers; readers put `missing` in its place. */
const or = (name: string, as: Reading, missing: unknown): Member => ({ ...must(name, as), missing })

const ERROR: Shape = [
  or('message', 'text', 'unknown error'),
  may('code', 'text'),
  may('retryable', 'flag'),
  may('stack', 'text'),
  may('details', 'any'),
  may('step', 'any'),
]

const STEP_EVENT: Shape = [
  must('at', 'number'),
  or('level', 'text', 'info'),
  must('message', 'text'),
  may('subId', 'text'),
  may('name', 'text'),
  may('group', 'text'),
  may('status', 'text'),
  may('phase', 'text'),
  may('process', 'text'),
  may('data', 'any'),
]

const error = may('error', { object: ERROR })
const events = may('events', { list: STEP_EVENT, skipBroken: true })

const HISTORY_EVENT: Shape = [
  must('seq', 'number'),
  must('kind', 'text'),
  may('name', 'text'),
  may('output', 'any'),
  error,
]

const PENDING_SIGNAL: Shape = [must('seq', 'number'), must('signal', 'text'), may('payload', 'any')]

/** All kinds of command in one: each has some of these members, in this order. */
const COMMAND: Shape = [
  must('kind', 'text'),
  must('seq', 'number'),
  may('name', 'text'),
  may('workflow', 'text'),
  may('ms', 'number'),
  may('signal', 'text'),
  may('group', 'text'),
  may('input', 'any'),
  may('output', 'any'),
  error,
  may('startedAt', 'number'),
  may('finishedAt', 'number'),
  events,
  may('parallelGroup', 'text'),
]

const ENGINE_EVENT: Shape = [
  must('type', 'text'),
  must('runId', 'text'),
  may('workflow', 'text'),
  may('namespace', 'text'),
  may('seq', 'number'),
  may('name', 'text'),
  may('kind', 'text'),
  may('output', 'any'),
  error,
  may('durationMs', 'number'),
  may('queueMs', 'number'),
  may('event', { object: STEP_EVENT }),
  may('diagnostics', 'any'),
  must('at', 'date'),
]

/** All kinds of request in one. Who answers it judges it, so nothing here is refused. */
const REQUEST_BODY: Shape = [
  or('kind', 'text', ''),
  may('runId', 'any'),
  may('runIds', 'any'),
  may('signal', 'any'),
  may('payload', 'any'),
  may('group', 'any'),
  may('axis', 'any'),
  may('query', 'any'),
  may('input', 'any'),
  may('opts', 'any'),
  may('options', 'any'),
]

const REGISTRATION: Shape = [
  must('name', 'text'),
  may('version', 'text'),
  may('group', 'text'),
  may('requires', 'texts'),
  may('origin', 'text'),
]

export const SHAPES = {
  task: [
    must('runId', 'text'),
    must('seq', 'number'),
    must('name', 'text'),
    must('stepId', 'text'),
    must('group', 'text'),
    may('input', 'any'),
    may('traceparent', 'text'),
    may('context', 'any'),
    may('transport', 'text'),
    may('priority', 'number'),
    or('attempt', 'number', 1),
  ],
  result: [
    must('runId', 'text'),
    must('seq', 'number'),
    must('stepId', 'text'),
    must('status', 'text'),
    may('output', 'any'),
    error,
    may('startedAt', 'number'),
    events,
    may('attempt', 'number'),
  ],
  heartbeat: [
    must('runId', 'text'),
    or('seq', 'number', 0),
    may('stepId', 'text'),
    or('group', 'text', ''),
    may('at', 'number'),
    may('progress', 'any'),
  ],
  workflow: [
    must('taskId', 'text'),
    must('runId', 'text'),
    must('workflow', 'text'),
    or('workflowVersion', 'text', '1'),
    may('input', 'any'),
    must('history', { list: HISTORY_EVENT }),
    may('pendingSignals', { list: PENDING_SIGNAL }),
    must('group', 'text'),
    may('transport', 'text'),
    may('traceparent', 'text'),
    may('priority', 'number'),
    or('attempt', 'number', 1),
  ],
  decision: [
    must('taskId', 'text'),
    must('runId', 'text'),
    must('status', 'text'),
    or('commands', { list: COMMAND }, []),
    may('output', 'any'),
    error,
  ],
  stepEvent: [
    must('runId', 'text'),
    must('seq', 'number'),
    must('name', 'text'),
    must('phase', 'text'),
    must('startedAt', 'number'),
    may('finishedAt', 'number'),
    may('output', 'any'),
    error,
    events,
  ],
  startRun: [
    or('tenant', 'text', ''),
    must('workflow', 'text'),
    may('input', 'any'),
    may('runId', 'text'),
    may('tags', 'texts'),
    may('searchAttributes', 'any'),
    may('version', 'text'),
    may('priority', 'number'),
    may('startAt', 'number'),
    may('concurrency', 'any'),
  ],
  runRequest: [
    must('requestId', 'text'),
    or('tenant', 'text', ''),
    or('body', { object: REQUEST_BODY }, { kind: '' }),
  ],
  runReply: [
    must('requestId', 'text'),
    must('result', {
      object: [
        must('ok', 'flag'),
        may('data', 'any'),
        may('error', { object: [or('message', 'text', 'unknown error'), may('code', 'text')] }),
      ],
    }),
  ],
  tenantEvent: [must('tenant', 'text'), must('event', { object: ENGINE_EVENT })],
  control: [
    may('from', 'text'),
    must('kind', 'text'),
    may('event', { object: ENGINE_EVENT }),
    may('runId', 'text'),
    may('taken', 'flag'),
    may('key', 'text'),
    may('paused', 'flag'),
  ],
  run: [
    must('runId', 'text'),
    may('namespace', 'text'),
    or('reason', 'text', 'resume'),
    may('priority', 'number'),
    or('at', 'number', 0),
  ],
  descriptor: [
    must('instanceId', 'text'),
    must('runtime', 'text'),
    or(
      'sdk',
      { object: [or('name', 'text', ''), or('version', 'text', '')] },
      { name: '', version: '' }
    ),
    may('protocol', { object: [must('version', 'number'), must('range', 'any')] }),
    may('capabilities', 'texts'),
    or('workflows', 'texts', []),
    or('steps', 'texts', []),
    may('registrations', { list: REGISTRATION, skipBroken: true }),
    may('partition', 'text'),
    may('namespace', 'text'),
    or('startedAt', 'number', 0),
  ],
  heartbeatStatus: [must('ts', 'number'), must('status', 'text'), or('descriptorHash', 'text', '')],
} as const satisfies Record<string, Shape>
