/*
 * Explanations from literal facts: what an engine seldom leaves behind, or what only a broker reports.
 * What engines leave behind: tests/scenarios/explanations.spec.ts.
 */
import { readFileSync } from 'node:fs'
import { test } from '@japa/runner'
import { explain } from '../../src/insight/explain.ts'
import type { ExplainFacts } from '../../src/insight/explain_facts.ts'
import { explanationText } from '../../src/insight/explain_text.ts'
import { compactAge, plainText, visible } from '../../src/insight/plain_text.ts'
import type { Explanation } from '../../src/types/explanation.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { RunStatus, WorkflowRun } from '../../src/types/run.ts'
import { stepRow } from './rows.ts'

const NOW = Date.UTC(2026, 10, 29, 3, 12, 40)
const MINUTE = 60_000
const ago = (minutes: number) => new Date(NOW - minutes * MINUTE)

const suspended = (patch: Partial<WorkflowRun> = {}): WorkflowRun => ({
  id: 'r',
  workflow: 'order',
  workflowVersion: '1',
  status: 'suspended',
  input: null,
  turns: 1,
  wakeAt: NOW + 4 * MINUTE,
  createdAt: ago(60),
  updatedAt: ago(1),
  ...patch,
})

function facts(more: Partial<ExplainFacts> = {}): ExplainFacts {
  return {
    run: suspended(),
    open: [],
    last: [],
    undos: [],
    waiters: [],
    fans: new Map(),
    groups: new Map(),
    children: new Map(),
    slots: [],
    windows: {
      reconcileMs: 5 * MINUTE,
      stalledAfterMs: 15 * MINUTE,
      maxRecoveryAttempts: Infinity,
    },
    nowMs: NOW,
    ...more,
  }
}

/** A step that was sent this many minutes ago. */
const sent = (minutes: number, more: Partial<StepCheckpoint> = {}): StepCheckpoint =>
  stepRow(3, {
    status: 'pending',
    workerGroup: 'payments',
    enqueuedAt: ago(minutes),
    ...more,
  })

const group = (depth: number, liveWorkers: number) =>
  new Map([['payments', { depth, liveWorkers }]])

const ended = (status: RunStatus, patch: Partial<WorkflowRun> = {}) => ({
  run: suspended({ status, wakeAt: undefined, updatedAt: ago(5), ...patch }),
})

interface Told {
  severity: Explanation['severity']
  why: string
  next: string
  you?: string[]
  brief: string
}

const CASES: [code: Explanation['code'], facts: Partial<ExplainFacts>, told: Told][] = [
  [
    'step_working',
    { open: [sent(9, { lastHeartbeatAt: new Date(NOW - 4000), heartbeatProgress: '40 %' })] },
    {
      severity: 'calm',
      why: 'charge runs on a worker; its last sign of life was 4s ago (40 %).',
      next: 'It goes on when the result is there.',
      brief: 'charge works',
    },
  ],
  [
    'step_silent',
    { open: [sent(9, { lastHeartbeatAt: ago(6) })] },
    {
      severity: 'watch',
      why: 'charge was taken by a worker; there is no sign of life for 6m.',
      next: 'Nothing happens by itself.',
      you: ['If the task is known to be lost, send it again: engine.redispatchPending("r")'],
      brief: 'charge silent for 6m',
    },
  ],
  [
    'step_silent',
    {
      run: suspended({ status: 'running', lockedUntil: NOW + MINUTE }),
      open: [sent(9, { lastHeartbeatAt: ago(6), timeoutMs: 10 * MINUTE })],
    },
    {
      severity: 'watch',
      why: 'charge was taken by a worker; there is no sign of life for 6m.',
      next: 'The attempt fails at 2026-11-29 03:16:40Z (in 4m) unless its worker reports.',
      you: ['If the task is known to be lost, send it again: engine.redispatchPending("r")'],
      brief: 'charge silent for 6m',
    },
  ],
  [
    'step_in_queue',
    { open: [sent(14)], groups: group(132, 2) },
    {
      severity: 'calm',
      why: 'charge is in the queue of payments (132 tasks there, 2 workers) for 14m.',
      next: 'It goes on when the result is there.',
      brief: 'charge in queue',
    },
  ],
  [
    'step_starved',
    { open: [sent(14)], groups: group(1, 0) },
    {
      severity: 'act',
      why: 'charge was handed to payments 14m ago, and no worker of it is alive. 1 task waits there.',
      next: 'It goes on by itself as soon as a worker of payments is up.',
      you: ['Start a worker: node ace durable:work'],
      brief: 'charge has no worker',
    },
  ],
  [
    'step_lost',
    {
      open: [sent(11, { wakeAt: NOW + 4 * MINUTE })],
      groups: group(0, 2),
      windows: { ...facts().windows, remoteRedispatchMs: 15 * MINUTE },
    },
    {
      severity: 'act',
      why:
        'charge was handed out 11m ago, and nobody reports working on it: ' +
        'the task is probably lost.',
      next: 'It is sent again at 2026-11-29 03:16:40Z (in 4m).',
      you: ['If the task is known to be lost, send it again: engine.redispatchPending("r")'],
      brief: 'charge out for 11m, lost?',
    },
  ],
  [
    'step_backoff',
    {
      open: [
        sent(9, {
          status: 'failed',
          attempts: 2,
          wakeAt: NOW + MINUTE,
          error: { message: 'timeout' },
        }),
      ],
    },
    {
      severity: 'watch',
      why: 'Attempt 2 of charge failed: timeout.',
      next: 'Attempt 3 is made at 2026-11-29 03:13:40Z (in 1m).',
      brief: 'charge again 2026-11-29 03:13:40Z (in 1m)',
    },
  ],
  [
    'cancelling',
    {
      run: suspended({
        status: 'running',
        cancelRequestedAt: NOW - MINUTE,
        cancelRequestedBy: 'ada',
      }),
      undos: [
        stepRow(-2, { name: 'compensate:refund', status: 'running' }),
        stepRow(-1, { name: 'compensate:ship' }),
      ],
    },
    {
      severity: 'watch',
      why: 'Cancel was asked for by ada 1m ago. 1 step is undone so far, now compensate:refund.',
      next: 'It ends as cancelled when the last undo has ended or given up.',
      brief: 'cancelling',
    },
  ],
  [
    'blocked_capability',
    {
      run: suspended({
        status: 'blocked',
        error: { message: 'needs gpu, which none of 3 offers' },
      }),
    },
    {
      severity: 'act',
      why: 'No live worker can run what comes next: needs gpu, which none of 3 offers.',
      next: 'It is looked at again at 2026-11-29 03:16:40Z (in 4m).',
      you: ['Start a worker: node ace durable:work'],
      brief: 'no capable worker',
    },
  ],
  [
    'blocked_protocol',
    {
      run: suspended({
        status: 'blocked',
        error: { message: 'they speak 2.0', code: 'protocol_incompatible' },
      }),
    },
    {
      severity: 'act',
      why: 'No live worker speaks a fitting protocol: they speak 2.0.',
      next: 'It is looked at again at 2026-11-29 03:16:40Z (in 4m).',
      you: ['Start a worker: node ace durable:work'],
      brief: 'no fitting protocol',
    },
  ],
  [
    'lease_expired',
    {
      run: suspended({ status: 'running', lockedUntil: NOW - MINUTE, recoveryAttempts: 2 }),
      windows: { ...facts().windows, maxRecoveryAttempts: 5 },
    },
    {
      severity: 'watch',
      why:
        'The process that executed it stopped reporting 1m ago. ' +
        'It was taken over 2 times already, 5 at most.',
      next: 'A worker takes it over with its next tick.',
      you: ['Start a worker: node ace durable:work'],
      brief: 'its process is gone',
    },
  ],
  [
    'unreachable',
    { run: suspended({ wakeAt: undefined }) },
    {
      severity: 'act',
      why: 'Nothing will wake this run. This should not happen.',
      next: 'Nothing happens by itself.',
      you: ['Bring it back: node ace durable:retry r'],
      brief: 'nothing will wake it',
    },
  ],
  [
    'child',
    {
      waiters: [{ token: 'child:c', runId: 'r', seq: 1, createdAt: ago(2) }],
      children: new Map([['c', null]]),
    },
    {
      severity: 'watch',
      why: 'Waits for child c, which is not there.',
      next: 'It goes on when the child has ended.',
      brief: 'child c',
    },
  ],
  [
    'dead',
    {
      ...ended('dead', { recoveryAttempts: 3, error: { message: 'crashed' } }),
      follower: 'dlq:r',
    },
    {
      severity: 'act',
      why: 'Given up 5m ago: its processes died 3 times without progress. It was handed to dlq:r.',
      next: 'Nothing happens by itself.',
      you: [
        'Bring it back: node ace durable:retry r',
        `Run it again from the beginning: node ace durable:retry r --input='…'`,
      ],
      brief: 'given up',
    },
  ],
  [
    'timed_out',
    ended('cancelled', { error: { message: 'execution timeout', code: 'execution_timeout' } }),
    {
      severity: 'watch',
      why: 'Ran out of its time limit 5m ago.',
      next: 'Nothing happens by itself.',
      you: [`Run it again from the beginning: node ace durable:retry r --input='…'`],
      brief: 'out of time',
    },
  ],
]

const say = (explanation: Explanation, runId = 'r'): Told => {
  const text = explanationText(explanation, runId)
  const { severity } = explanation
  const [why, next, brief] = [text.why, text.next, text.brief].map((one) => plainText(one, NOW))
  const told: Told = { severity, why, next, brief }
  if (text.you.length > 0) told.you = text.you.map((one) => plainText(one, NOW))
  return told
}

test.group('Explanations', () => {
  for (const [code, given, told] of CASES) {
    test(`${code}: ${told.why} ${told.next}`, ({ assert }) => {
      const explanation = explain(facts(given))
      assert.equal(explanation.code, code)
      assert.deepEqual(say(explanation), told)
    })
  }

  test('every code is said by some test', ({ assert }) => {
    const here = new Set<string>(CASES.map(([code]) => code))
    const scenarios = readFileSync('tests/scenarios/explanations.spec.ts', 'utf8')
    const types = readFileSync('src/types/explanation.ts', 'utf8')
    const union = types.slice(types.indexOf('ExplanationCode ='), types.indexOf('NextCode ='))
    const codes = [...union.matchAll(/\| '(\w+)'/g)].map(([, code]) => code)
    assert.isAbove(codes.length, 30)
    const BY_SENTENCE = ['completed', 'continued', 'cancelled']
    const missing = codes.filter((code) => !here.has(code) && !scenarios.includes(`'${code}'`))
    assert.sameMembers(missing, BY_SENTENCE)
  })

  test('what needs attention goes before what does not; more waits than four are counted', ({
    assert,
  }) => {
    const waiters = Array.from({ length: 6 }, (_, seq) => ({ token: `t${seq}`, runId: 'r', seq }))
    const explanation = explain(facts({ waiters, open: [sent(20)] }))
    assert.equal(explanation.code, 'step_lost')
    assert.deepEqual(
      explanation.also?.map(({ params }) => params.name),
      ['t5', 't4', 't3', 't2']
    )
    assert.equal(explanation.more, 2)
    assert.include(say(explanation).why, '6 more waits beside it: signal t5; signal t4')
  })

  test('the chain of children leads to the cause, five deep at most', ({ assert }) => {
    let cause = explain(facts({ open: [sent(20)] }))
    for (let depth = 7; depth > 0; depth--) {
      const run = suspended({ id: `c${depth}` })
      cause = explain(
        facts({
          waiters: [{ token: `child:c${depth}`, runId: 'r', seq: 0 }],
          children: new Map([[run.id, { run, explanation: cause }]]),
        })
      )
    }
    assert.equal(cause.severity, 'act')
    assert.deepEqual(
      cause.via?.map(({ runId }) => runId),
      ['c1', 'c2', 'c3', 'c4', 'c5']
    )
  })

  test('a sleep that lost its race is not what the run waits for', ({ assert }) => {
    const over = stepRow(0, { name: 'sleep', kind: 'sleep', wakeAt: NOW + MINUTE, order: 4 })
    const waiters = [{ token: 'go', runId: 'r', seq: 5 }]
    const { code, also } = explain(facts({ last: [over], waiters }))
    assert.equal(code, 'signal')
    assert.isUndefined(also)
  })

  test('an id goes into a command as one word, and what controls a terminal is shown', ({
    assert,
  }) => {
    const lost = explain(facts({ run: suspended({ wakeAt: undefined }) }))
    assert.deepEqual(say(lost, `a b'c`).you, [`Bring it back: node ace durable:retry 'a b'\\''c'`])
    assert.equal(visible('a\u001b[31mb\u202ec\n'), 'a\\u001b[31mb\\u202ec\\u000a')
  })

  test('ages take two units', ({ assert }) => {
    const ages = [-5, 0, 999, 45_000, 723_000, 16_320_000, 194_400_000, 86_400_000].map(compactAge)
    assert.deepEqual(ages, ['0s', '0s', '0s', '45s', '12m3s', '4h32m', '2d6h', '1d'])
  })
})
