/*
 * When a run counts as stalled, from literal facts.
 */
import { test } from '@japa/runner'
import { type StallFacts, stallOf } from '../../src/insight/stalled.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { RunStatus, WorkflowRun } from '../../src/types/run.ts'
import { stepRow } from './rows.ts'

const NOW = 100_000_000
const MINUTE = 60_000
const ago = (minutes: number) => new Date(NOW - minutes * MINUTE)

interface Given extends Partial<WorkflowRun> {
  status: RunStatus
  /** Minutes since the row of the run changed. */
  changed?: number
}

function facts(given: Given, more: Partial<StallFacts> = {}): StallFacts {
  const { changed = 20, ...patch } = given
  const run: WorkflowRun = {
    id: 'r',
    workflow: 'order',
    workflowVersion: '1',
    input: null,
    createdAt: ago(600),
    updatedAt: ago(changed),
    ...patch,
  }
  const windows = { nowMs: NOW, stalledAfterMs: 15 * MINUTE, reconcileMs: 5 * MINUTE }
  return { run, open: [], waiters: [], ...windows, ...more }
}

/** A step that was sent this many minutes ago, with its last beat. */
const sent = (minutes: number, beat?: number, more: Partial<StepCheckpoint> = {}) =>
  stepRow(3, {
    status: 'pending',
    enqueuedAt: ago(minutes),
    ...(beat === undefined ? {} : { lastHeartbeatAt: ago(beat) }),
    ...more,
  })

const soon = NOW + MINUTE
const waiter = { token: 'go', runId: 'r', seq: 4 }

const IDLE: [title: string, facts: StallFacts, idleMinutes: number | undefined][] = [
  ['a run that nobody picks up', facts({ status: 'pending' }), 20],
  ['a run that was just created', facts({ status: 'pending', changed: 14 }), undefined],
  ['a body that runs for long', facts({ status: 'running' }), 20],
  [
    'a body that awaits a step whose worker reports',
    facts({ status: 'running' }, { open: [sent(20, 1)] }),
    undefined,
  ],
  ['a run that no worker can serve', facts({ status: 'blocked', changed: 15 }), 15],
  [
    'a step without an answer, though the run was looked at just now',
    facts({ status: 'suspended', changed: 1, wakeAt: soon }, { open: [sent(16)] }),
    16,
  ],
  [
    'a step whose worker reported lately',
    facts({ status: 'suspended', wakeAt: soon }, { open: [sent(90, 14)] }),
    undefined,
  ],
  [
    'a step whose worker fell silent',
    facts({ status: 'suspended', wakeAt: soon }, { open: [sent(90, 30)] }),
    30,
  ],
  [
    'one of several steps that is alive',
    facts({ status: 'suspended', wakeAt: soon }, { open: [sent(90), sent(2)] }),
    undefined,
  ],
  [
    'a lost step raced by a signal',
    facts({ status: 'suspended', wakeAt: soon }, { open: [sent(16)], waiters: [waiter] }),
    16,
  ],
  [
    'a wait for a signal',
    facts({ status: 'suspended', wakeAt: soon }, { waiters: [waiter] }),
    undefined,
  ],
  ['a long sleep', facts({ status: 'suspended', wakeAt: NOW + 60 * MINUTE }), undefined],
  [
    'a long sleep beside a step',
    facts({ status: 'suspended', wakeAt: NOW + 60 * MINUTE }, { open: [sent(16)] }),
    undefined,
  ],
  ['the last minute of a sleep', facts({ status: 'suspended', wakeAt: soon }), undefined],
  ['a timer that nobody fires', facts({ status: 'suspended', wakeAt: NOW - 40 * MINUTE }), 40],
  [
    'a wake that nobody follows',
    facts({ status: 'suspended', wakeAt: soon, wakeRequestedAt: NOW - 17 * MINUTE }),
    17,
  ],
  ['a run that no poll can find', facts({ status: 'suspended' }), 20],
  ['a run that failed', facts({ status: 'failed' }, { open: [sent(90)] }), undefined],
  [
    'a local step that was cut short',
    facts(
      { status: 'suspended', wakeAt: soon },
      { open: [sent(90, undefined, { kind: 'local', status: 'running' })] }
    ),
    undefined,
  ],
]

test.group('Stalled runs', () => {
  for (const [title, given, idle] of IDLE) {
    test(`${title} ${idle === undefined ? 'is none' : 'is one'}`, ({ assert }) => {
      const info = stallOf(given)
      assert.equal(info && info.idleMs / MINUTE, idle)
      if (info) assert.equal(info.run, given.run)
    })
  }

  test('the step that is out longest is named', ({ assert }) => {
    const first = sent(30, 20, { seq: 1, name: 'charge', attempts: 2 })
    const info = stallOf(facts({ status: 'suspended' }, { open: [sent(16, 16), first] }))
    assert.deepEqual(info?.pendingStep, {
      seq: 1,
      name: 'charge',
      attempts: 2,
      ageMs: 30 * MINUTE,
      heartbeatAgeMs: 20 * MINUTE,
    })
    const silent = stallOf(facts({ status: 'suspended' }, { open: [sent(16)] }))
    assert.isNull(silent?.pendingStep?.heartbeatAgeMs)
  })
})
