import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { UnstorableValueError } from '../../src/foundation/json.ts'
import {
  type MessageKind,
  type Messages,
  WireFormatError,
  decode,
  encode,
  readWorkerBeat,
  taskKindOf,
  toWire,
} from '../../src/wire/codec.ts'

const FIXTURES = join(import.meta.dirname, '../fixtures/wire')
const KIND_OF: Record<string, MessageKind> = {
  'descriptor-registrations.json': 'descriptor',
  'descriptor.json': 'descriptor',
  'heartbeat-status.json': 'heartbeatStatus',
  'heartbeat.json': 'heartbeat',
  'result.json': 'result',
  'run-reply.err.json': 'runReply',
  'run-reply.ok.json': 'runReply',
  'run-request.json': 'runRequest',
  'start-run.json': 'startRun',
  'task.step.json': 'task',
  'task.workflow.json': 'workflow',
  'tenant-event.json': 'tenantEvent',
}

const minified = (file: string): string =>
  JSON.stringify(JSON.parse(readFileSync(join(FIXTURES, file), 'utf8')))

const PAYLOADS = ['input', 'output', 'data', 'payload', 'context', 'query', 'searchAttributes']

/** The same JSON with the members of every object in reverse order, except inside of payloads. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, PAYLOADS.includes(key) ? member : reversed(member)])
  )
}

const MESSAGES: { [K in MessageKind]: Messages[K] } = {
  task: { runId: 'r', seq: 0, name: 'a:b', stepId: 'r:0', group: 'a-b', input: null, attempt: 2 },
  result: {
    runId: 'r',
    seq: 0,
    stepId: 'r:0',
    status: 'failed',
    error: { message: 'no', code: 'c', retryable: false, details: { a: null } },
    events: [{ at: 1, level: 'warn', message: 'm', subId: 's', status: 'skipped' }],
  },
  heartbeat: { runId: 'r', seq: 0, group: 'g', at: 5, progress: { done: 1 } },
  workflow: {
    taskId: 't',
    runId: 'r',
    workflow: 'w',
    workflowVersion: '1',
    input: [1],
    history: [
      { seq: 0, kind: 'signal', output: 1 },
      { seq: 1, kind: 'call', name: 'x', error: { message: 'm' } },
    ],
    group: 'g',
    attempt: 1,
  },
  decision: {
    taskId: 't',
    runId: 'r',
    status: 'continue',
    commands: [
      { kind: 'call', seq: 0, name: 'n', group: 'g', input: 1, parallelGroup: 'gather:0' },
      { kind: 'recordStep', seq: 1, name: 'n', output: 2, startedAt: 1, finishedAt: 2 },
      { kind: 'sleep', seq: 2, ms: 10 },
      { kind: 'waitSignal', seq: 3, signal: 's' },
      { kind: 'startChild', seq: 4, workflow: 'w', input: {} },
    ],
  },
  stepEvent: { runId: 'r', seq: 1, name: 'n', phase: 'completed', startedAt: 1, output: 3 },
  startRun: { tenant: 'a', workflow: 'w', input: {}, version: '2', priority: 1, startAt: 9 },
  runRequest: { requestId: 'q', tenant: 'a', body: { kind: 'waitingFor', runIds: ['r'] } },
  runReply: { requestId: 'q', result: { ok: true, data: null } },
  tenantEvent: {
    tenant: 'a',
    event: { type: 'step.failed', runId: 'r', error: { message: 'm' }, at: new Date(1000) },
  },
  control: {
    from: 'i',
    kind: 'event',
    event: { type: 'run.started', runId: 'r', at: new Date(5) },
  },
  run: { runId: 'r', namespace: 'n', reason: 'start', priority: 3, at: 4 },
  descriptor: {
    instanceId: 'i',
    runtime: 'node',
    sdk: { name: 's', version: '1' },
    protocol: { version: 1, range: [1, 1] },
    capabilities: [],
    workflows: [],
    steps: ['a'],
    startedAt: 1,
  },
  heartbeatStatus: { ts: 1, status: 'draining', descriptorHash: 'h' },
}

test.group('wire codec | golden fixtures', () => {
  test('every fixture has a kind', ({ assert }) => {
    assert.sameMembers(readdirSync(FIXTURES), Object.keys(KIND_OF))
  })

  test('{file} decodes and encodes to the same bytes')
    .with(Object.entries(KIND_OF).map(([file, kind]) => ({ file, kind })))
    .run(({ assert }, { file, kind }) => {
      assert.equal(encode(kind, decode(kind, minified(file))), minified(file))
      const parsed: unknown = JSON.parse(minified(file))
      assert.equal(encode(kind, decode(kind, parsed)), minified(file))
    })

  test('{file} is emitted in order, however it was put together')
    .with(Object.entries(KIND_OF).map(([file, kind]) => ({ file, kind })))
    .run(({ assert }, { file, kind }) => {
      const message = reversed(JSON.parse(minified(file)))
      assert.notEqual(JSON.stringify(message), minified(file))
      assert.equal(encode(kind, message as never), minified(file))
    })

  test('a step and a turn are told apart by shape', ({ assert }) => {
    assert.equal(taskKindOf(minified('task.step.json')), 'task')
    assert.equal(taskKindOf(JSON.parse(minified('task.workflow.json'))), 'workflow')
    assert.equal(taskKindOf({ workflow: 'w', history: 'none' }), 'task')
  })
})

test.group('wire codec | round trips', () => {
  test('{kind} survives the trip')
    .with(Object.entries(MESSAGES).map(([kind, message]) => ({ kind, message })))
    .run(({ assert }, { kind, message }) => {
      const text = encode(kind as MessageKind, message as never)
      assert.deepEqual(decode(kind as MessageKind, text) as unknown, message)
      assert.equal(encode(kind as MessageKind, decode(kind as MessageKind, text) as never), text)
    })

  test('dates of an event are ISO text on the wire and dates in memory', ({ assert }) => {
    const text = encode('tenantEvent', MESSAGES.tenantEvent)
    assert.include(text, '"at":"1970-01-01T00:00:01.000Z"')
    assert.instanceOf(decode('tenantEvent', text).event.at, Date)
  })

  test('absent and null optionals are omitted, a null payload is kept', ({ assert }) => {
    const message = { ...MESSAGES.task, priority: undefined, traceparent: null as never }
    assert.equal(
      encode('task', message),
      '{"runId":"r","seq":0,"name":"a:b","stepId":"r:0","group":"a-b","input":null,"attempt":2}'
    )
    assert.equal(
      encode('runReply', { requestId: 'q', result: { ok: true, data: undefined } }),
      '{"requestId":"q","result":{"ok":true}}'
    )
  })

  test('unknown members are kept, at the end and inside', ({ assert }) => {
    const text =
      '{"runId":"r","seq":1,"stepId":"r:1","status":"failed","error":{"message":"m","errors":[1]},"extra":{"a":1}}'
    assert.equal(encode('result', decode('result', text)), text)
  })

  test('an unknown command is kept for who must refuse it', ({ assert }) => {
    const text =
      '{"taskId":"t","runId":"r","status":"continue","commands":[{"kind":"teleport","seq":0,"to":1}]}'
    assert.equal(encode('decision', decode('decision', text)), text)
  })

  test('toWire leaves the message alone and orders it', ({ assert }) => {
    const message = {
      attempt: 1,
      input: 1,
      group: 'g',
      stepId: 'r:0',
      name: 'n',
      seq: 0,
      runId: 'r',
    }
    assert.deepEqual(Object.keys(toWire('task', message)), [
      'runId',
      'seq',
      'name',
      'stepId',
      'group',
      'input',
      'attempt',
    ])
    assert.equal(Object.keys(message)[0], 'attempt')
  })

  test('a payload without JSON form is refused', ({ assert }) => {
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    assert.throws(
      () => encode('task', { ...MESSAGES.task, input: cyclic }),
      UnstorableValueError as never
    )
  })
})

test.group('wire codec | tolerant reads', () => {
  test('what stands in for {name}')
    .with([
      {
        name: 'a missing attempt',
        kind: 'task' as const,
        raw: { runId: 'r', seq: 0, name: 'n', stepId: 'r:0', group: 'n' },
        expected: { runId: 'r', seq: 0, name: 'n', stepId: 'r:0', group: 'n', attempt: 1 },
      },
      {
        name: 'nulls and wrong types of optionals',
        kind: 'result' as const,
        raw: {
          runId: 'r',
          seq: 0,
          stepId: 'r:0',
          status: 'completed',
          output: null,
          error: null,
          startedAt: 'soon',
          events: null,
        },
        expected: { runId: 'r', seq: 0, stepId: 'r:0', status: 'completed', output: null },
      },
      {
        name: 'an error sent as text, and a broken step event',
        kind: 'result' as const,
        raw: {
          runId: 'r',
          seq: 0,
          stepId: 'r:0',
          status: 'failed',
          error: 'boom',
          events: [{ level: 'info' }, 7, { at: 1, message: 'm' }],
        },
        expected: {
          runId: 'r',
          seq: 0,
          stepId: 'r:0',
          status: 'failed',
          error: { message: 'boom' },
          events: [{ at: 1, level: 'info', message: 'm' }],
        },
      },
      {
        name: 'the seq of a run-scoped beat',
        kind: 'heartbeat' as const,
        raw: { runId: 'r', group: 'g' },
        expected: { runId: 'r', seq: 0, group: 'g' },
      },
      {
        name: 'missing commands',
        kind: 'decision' as const,
        raw: { taskId: 't', runId: 'r', status: 'completed' },
        expected: { taskId: 't', runId: 'r', status: 'completed', commands: [] },
      },
      {
        name: 'a request without a body',
        kind: 'runRequest' as const,
        raw: { requestId: 'q' },
        expected: { requestId: 'q', tenant: '', body: { kind: '' } },
      },
    ])
    .run(({ assert }, { kind, raw, expected }) => {
      assert.deepEqual(decode(kind, raw) as unknown, expected)
    })

  test('a message without identity is refused by name', ({ assert }) => {
    assert.throws(() => decode('result', '{"runId":"r"}'), /result\.seq is missing/)
    assert.throws(() => decode('task', '[]'), /must be a JSON object/)
    assert.throws(() => decode('task', '{'), /is not JSON/)
    assert.throws(
      () => decode('workflow', { ...MESSAGES.workflow, history: [{ kind: 'step' }] }),
      /workflow\.history\[0\]\.seq is missing/
    )
    assert.instanceOf(
      ((): unknown => {
        try {
          return decode('run', 'null')
        } catch (error) {
          return error
        }
      })(),
      WireFormatError
    )
  })

  test('a member called __proto__ changes nothing', ({ assert }) => {
    const read = decode('heartbeat', '{"runId":"r","group":"g","__proto__":{"stepId":"x"}}')
    assert.isUndefined(read.stepId)
    assert.equal(Object.getPrototypeOf(read), Object.prototype)
  })
})

test.group('wire codec | worker beats', () => {
  test('reads {name}')
    .with([
      {
        name: 'the status object',
        raw: '{"ts":1752710460000,"status":{"inFlight":1},"descriptorHash":"h"}',
        expected: {
          lastBeatAt: 1752710460000,
          status: { inFlight: 1 },
          descriptorHash: 'h',
        } as unknown,
      },
      {
        name: 'the compact form',
        raw: '{"ts":1752710460000,"status":"up","descriptorHash":"h"}',
        expected: { lastBeatAt: 1752710460000, descriptorHash: 'h' },
      },
      { name: 'a bare time', raw: '1752710460000', expected: { lastBeatAt: 1752710460000 } },
      { name: 'seconds', raw: 1752710460, expected: { lastBeatAt: 1752710460000 } },
      { name: 'garbage', raw: 'x{', expected: { lastBeatAt: 0 } },
      { name: 'nothing', raw: null, expected: { lastBeatAt: 0 } },
    ])
    .run(({ assert }, { raw, expected }) => {
      assert.deepEqual(readWorkerBeat(raw) as unknown, expected)
    })
})
