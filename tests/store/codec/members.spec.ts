/*
 * The members of the codec store: which there are, what each does to payloads, and what it leaves alone.
 */
import { test } from '@japa/runner'
import { CodecStateStore, type PayloadCodec } from '../../../src/store/codec/codec_store.ts'
import { TREATMENTS } from '../../../src/store/codec/treatments.ts'
import { fullStore } from '../../../src/store/full_store.ts'
import { InMemoryStateStore } from '../../../src/store/memory/memory_store.ts'
import {
  OPTIONAL_MEMBERS,
  REQUIRED_MEMBERS,
  SCHEDULE_MEMBERS,
} from '../../../src/store/ports/members.ts'
import type { StateStore } from '../../../src/store/state_store.ts'
import { requiredOnly } from '../../conformance/required_only.ts'
import { withoutMembers } from '../../helpers/stores_under_test.ts'

/** Shows what passed through it. */
const boxing: PayloadCodec = {
  encode: (value) => ({ boxed: value }),
  decode: (value) => (value as { boxed: unknown }).boxed,
}

const ALWAYS = [
  'ensureSchema',
  'close',
  'transaction',
  'getLatestCheckpointByName',
  'listCheckpointsByNamePrefix',
  'listSignalWaitersByRunIds',
  'countRuns',
  'runValueFacets',
  'listOrphanedRuns',
  'recordStepHeartbeat',
]

const complete = (): StateStore =>
  Object.assign(new InMemoryStateStore(), { ensureSchema: async () => {} })

const membersOf = (store: object): string[] =>
  Object.keys(store).filter((name) => typeof (store as never)[name] === 'function')

test.group('codec store | members', () => {
  test('the table lists every member of the port, and no others', ({ assert }) => {
    assert.sameMembers(Object.keys(TREATMENTS), [...REQUIRED_MEMBERS, ...OPTIONAL_MEMBERS])
    const presence = (wanted: string) =>
      Object.entries(TREATMENTS).flatMap(([name, { presence: is }]) => (is === wanted ? name : []))
    assert.sameMembers(presence('required'), REQUIRED_MEMBERS)
    assert.sameMembers(presence('stand-in'), ALWAYS)
  })

  test('over a complete store every member is there', ({ assert }) => {
    const store = new CodecStateStore(complete(), boxing)
    assert.sameMembers(membersOf(store), [...REQUIRED_MEMBERS, ...OPTIONAL_MEMBERS])
  })

  test('over required members only the required ones and the stand-ins are there', ({ assert }) => {
    const store = new CodecStateStore(requiredOnly(new InMemoryStateStore()), boxing)
    assert.sameMembers(membersOf(store), [...REQUIRED_MEMBERS, ...ALWAYS])
  })

  test('each optional member that the inner store lacks is missing, but for the stand-ins', ({
    assert,
  }) => {
    for (const name of OPTIONAL_MEMBERS) {
      const store = new CodecStateStore(withoutMembers(complete(), [name]), boxing)
      assert.equal(name in store, ALWAYS.includes(name), name)
    }
  })

  test('groups are there together or not at all', ({ assert }) => {
    const groups = [SCHEDULE_MEMBERS, ['checkpointStats', 'queryCheckpoints']] as const
    for (const group of groups) {
      const store = new CodecStateStore(withoutMembers(complete(), [group[0]]), boxing)
      for (const name of group) assert.isFalse(name in store, name)
    }
  })

  test('a completed store counts no stand-in as a capability', async ({ assert }) => {
    const bare = fullStore(new CodecStateStore(requiredOnly(new InMemoryStateStore()), boxing))
    assert.isFalse(bare.capabilities.transaction)
    await assert.rejects(() => bare.transaction(async () => 1), /ctx\.localStep/)
    const all = fullStore(new CodecStateStore(complete(), boxing))
    assert.isTrue(all.capabilities.transaction)
  })

  test('a member of a subclass stands', async ({ assert }) => {
    class Mine extends CodecStateStore {
      override async getRun(_runId: string) {
        return null
      }
    }
    const store = new Mine(complete(), boxing)
    await store.createRun(RUN)
    assert.isNull(await store.getRun('r'))
  })

  test('members are found on the inner store when they are called', async ({ assert }) => {
    const inner = complete()
    const store = new CodecStateStore(inner, boxing)
    inner.countRuns = async () => 7
    assert.equal(await store.countRuns({}), 7)
  })

  test('a scoped view is wrapped with the same codec and coverage', async ({ assert }) => {
    const inner = new InMemoryStateStore()
    const store = new CodecStateStore(inner, boxing, { coverage: 'extended' })
    const view = store.withScope!({ namespace: 'n' })
    assert.instanceOf(view, CodecStateStore)
    await view.createRun({ ...RUN, namespace: 'n' })
    await view.createRun({ ...RUN, id: 'other', namespace: 'm' })
    assert.deepInclude(await inner.getRun('r'), {
      input: { boxed: 1 },
      error: { '@agora/durable:encoded': { boxed: { message: 'e' } } } as never,
    })
    assert.deepInclude(await view.getRun('r'), { input: 1, error: { message: 'e' } })
    assert.isNull(await view.getRun('other'))
  })
})

const RUN = {
  id: 'r',
  workflow: 'w',
  workflowVersion: '1',
  status: 'pending',
  input: 1,
  error: { message: 'e' },
  createdAt: new Date(1),
  updatedAt: new Date(1),
} as const

const ROW = {
  runId: 'r',
  seq: 0,
  name: 'n',
  kind: 'remote',
  stepId: 'r:0',
  status: 'pending',
  input: 1,
  output: 2,
  error: { message: 'e' },
  events: [{ at: 1, level: 'info', message: 'm' }],
  heartbeatProgress: 3,
  attempts: 1,
  enqueuedAt: new Date(1),
  startedAt: new Date(1),
  finishedAt: new Date(1),
} as const

const WAITER = { token: 't', runId: 'r', seq: 0 }
const SCHEDULE = { id: 's', workflow: 'w', spec: 1, paused: false }
const EVENT = { id: 'e', name: 'n', payload: 1, publishedAt: 1 }

const box = <T>(value: T) => ({ boxed: value })
const BOXED_RUN = { ...RUN, input: box(1) }
const BOXED_ROW = { ...ROW, input: box(1), output: box(2) }
const BOXED_EVENT = { ...EVENT, payload: box(1) }
const BOXED_SCHEDULE = { ...SCHEDULE, spec: box(1) }

const COMMIT = {
  runId: 'r',
  owner: 'o',
  turn: 1,
  nowMs: 1,
  rows: [{ row: ROW, retryOf: 1 }],
  stamps: [{ seq: 1, order: 2 }],
  waits: [{ waiter: WAITER, row: ROW }],
  expiries: [{ waiter: WAITER, row: ROW }],
  claims: [{ event: EVENT, waiter: WAITER, row: ROW }],
  searchAttributes: { a: 1 },
  runs: [RUN],
  children: [RUN],
  settle: {
    status: 'completed',
    patch: { output: 1, wakeAt: undefined },
    looks: [{ waiter: WAITER, row: ROW }],
    rekey: { from: 'a', to: 'b' },
  },
}
const BOXED_COMMIT = {
  ...COMMIT,
  rows: [{ row: BOXED_ROW, retryOf: 1 }],
  waits: [{ waiter: WAITER, row: BOXED_ROW }],
  expiries: [{ waiter: WAITER, row: BOXED_ROW }],
  claims: [{ event: BOXED_EVENT, waiter: WAITER, row: BOXED_ROW }],
  runs: [BOXED_RUN],
  children: [BOXED_RUN],
  settle: {
    ...COMMIT.settle,
    patch: { output: box(1), wakeAt: undefined },
    looks: [{ waiter: WAITER, row: BOXED_ROW }],
  },
}
const VERDICT = { applied: true, stored: [ROW], children: [{ id: 'c', output: 1 }] }
const BOXED_VERDICT = {
  applied: true,
  stored: [BOXED_ROW],
  children: [{ id: 'c', output: box(1) }],
}

/** Arguments and what of them reaches the inner store; its answer and what of that comes out. */
interface Passage {
  args?: unknown[]
  reaches?: unknown[]
  answer?: unknown
  comes?: unknown
}

const gives = (...args: unknown[]): Passage => ({ args })
const rows: Passage = { answer: [BOXED_ROW], comes: [ROW] }
const runs: Passage = { answer: [BOXED_RUN], comes: [RUN] }

const SETTLEMENT = { runId: 'r', seq: 0, status: 'completed', output: 1, wakeAt: null }

const PASSAGES: Partial<Record<keyof typeof TREATMENTS, Passage>> = {
  createRun: { args: [RUN], reaches: [BOXED_RUN] },
  updateRun: { args: ['r', { output: null }], reaches: ['r', { output: box(null) }] },
  updateRunIf: {
    args: ['r', ['running'], { output: undefined, tags: ['t'] }],
    reaches: ['r', ['running'], { output: undefined, tags: ['t'] }],
  },
  getRun: { args: ['r'], answer: BOXED_RUN, comes: RUN },
  listRuns: runs,
  saveCheckpoint: { args: [ROW], reaches: [BOXED_ROW] },
  getCheckpoint: { args: ['r', 0], answer: BOXED_ROW, comes: ROW },
  listCheckpoints: rows,
  listIncompleteRuns: { ...runs, args: ['n'] },
  listPendingRuns: { ...runs, args: [1, 'n'] },
  listDueTimers: { ...runs, args: [1, 'n', 2] },
  listOrphanedRuns: { ...runs, args: [1, 'n', 2] },
  listUnfinishedCancels: { ...runs, args: ['n', 2] },
  listOverdueRuns: { ...runs, args: [1, 'n', 2] },
  releaseRunLock: gives('r', 'owner'),
  putSignalWaiter: gives(WAITER),
  bufferSignal: { args: ['t', 1], reaches: ['t', box(1)] },
  takeBufferedSignal: { args: ['t'], answer: { payload: box(1) }, comes: { payload: 1 } },
  bufferEvent: { args: [EVENT], reaches: [BOXED_EVENT] },
  listBufferedEvents: { args: ['n', 1], answer: [BOXED_EVENT], comes: [EVENT] },
  saveCheckpointIfPending: { args: [ROW], reaches: [BOXED_ROW], answer: true, comes: true },
  saveCheckpointsIfPending: {
    args: [[ROW]],
    reaches: [[BOXED_ROW]],
    answer: [true],
    comes: [true],
  },
  settleCheckpointsIfPending: {
    args: [[SETTLEMENT]],
    reaches: [[{ ...SETTLEMENT, output: box(1) }]],
  },
  getCheckpointsForSettle: rows,
  listCheckpointsForReplay: rows,
  listCheckpointsAt: rows,
  getCheckpoints: rows,
  getRuns: runs,
  getLatestCheckpointByName: { args: ['r', 'n'], answer: BOXED_ROW, comes: ROW },
  listCheckpointsByNamePrefix: rows,
  queryCheckpoints: rows,
  registerChildWaits: {
    args: [[{ waiter: WAITER, checkpoint: ROW }]],
    reaches: [[{ waiter: WAITER, checkpoint: BOXED_ROW }]],
  },
  compactCheckpoints: {
    args: ['r', { fromSeq: 0, toSeq: 1 }, ROW],
    reaches: ['r', { fromSeq: 0, toSeq: 1 }, BOXED_ROW],
  },
  recordStepHeartbeat: gives('r', 0, new Date(1), 3),
  createSchedule: { args: [SCHEDULE], reaches: [BOXED_SCHEDULE] },
  updateSchedule: { args: ['s', { spec: 1 }], reaches: ['s', { spec: box(1) }] },
  getSchedule: { args: ['s'], answer: BOXED_SCHEDULE, comes: SCHEDULE },
  listSchedules: { answer: [BOXED_SCHEDULE], comes: [SCHEDULE] },
  commitTurn: { args: [COMMIT], reaches: [BOXED_COMMIT], answer: BOXED_VERDICT, comes: VERDICT },
  deliverSignal: {
    args: [{ token: 't', payload: 1, nowMs: 1, buffer: true }],
    reaches: [{ token: 't', payload: box(1), nowMs: 1, buffer: true }],
  },
  settleTargets: {
    answer: [{ checkpoint: BOXED_ROW, runStatus: 'running' }],
    comes: [{ checkpoint: ROW, runStatus: 'running' }],
  },
  claimRun: {
    answer: { run: BOXED_RUN, previousTurns: 1 },
    comes: { run: RUN, previousTurns: 1 },
  },
  claimDueRuns: { answer: [{ run: BOXED_RUN }], comes: [{ run: RUN }] },
}

/** Listed so that a member with payloads cannot be forgotten. */
const WITHOUT_PAYLOADS = [
  ...['deleteRun', 'tryLockRun', 'renewRunLock', 'takeSignalWaiter', 'listSignalWaiters'],
  ...['removeSignalWaiter', 'removeBufferedEvent', 'ensureSchema', 'close', 'hasCheckpoints'],
  ...['countCheckpoints', 'hasSignalWaiter', 'listSignalWaitersByRunIds', 'countRuns'],
  ...['runFacets', 'runValueFacets', 'checkpointStats', 'deleteRuns', 'deleteRunsIf'],
  ...['listBufferedTokens', 'dropBufferedSignals', 'pruneBufferedEvents', 'tryAdmitSingleton'],
  ...['deleteSchedule', 'pairSignal', 'notifyWake', 'onWake'],
]

test.group('codec store | what each member does', () => {
  test('every member is either shown here or has no payloads', ({ assert }) => {
    const shown = [...Object.keys(PASSAGES), ...WITHOUT_PAYLOADS, 'transaction', 'withScope']
    assert.sameMembers(shown, [...REQUIRED_MEMBERS, ...OPTIONAL_MEMBERS])
  })

  for (const [name, { args = [], reaches = args, answer, comes }] of Object.entries(PASSAGES)) {
    test(`${name} changes payloads and nothing else`, async ({ assert }) => {
      const calls: unknown[][] = []
      const inner = complete()
      Object.assign(inner, {
        [name]: async (...given: unknown[]) => {
          calls.push(given)
          return answer
        },
      })
      const store = new CodecStateStore(inner, boxing)
      const before = structuredClone(args)
      const came = await (store as never as Record<string, (...all: unknown[]) => unknown>)[name](
        ...args
      )
      assert.deepEqual(calls, [reaches])
      assert.deepEqual(came, comes)
      assert.deepEqual(args, before)
    })
  }

  test('members without payloads pass on what they are given, and what comes back', async ({
    assert,
  }) => {
    for (const name of WITHOUT_PAYLOADS) {
      const inner = complete()
      const [given, answered] = [[{}, {}, {}], {}]
      Object.assign(inner, {
        [name]: (...args: unknown[]) => (given.every((one, i) => one === args[i]) ? answered : 0),
      })
      const store = new CodecStateStore(inner, boxing) as never
      assert.equal((store[name] as (...args: unknown[]) => unknown)(...given), answered, name)
    }
  })

  test('the checkpoint of a transaction is encoded, under its fence', async ({ assert }) => {
    const saved: unknown[] = []
    const raw = {}
    const inner = Object.assign(complete(), {
      transaction: (work: (tx: unknown) => unknown) =>
        work({ raw, saveCheckpoint: async (...args: unknown[]) => void saved.push(args) }),
    })
    const store = new CodecStateStore(inner as StateStore, boxing)
    const value = await store.transaction(async (tx) => {
      assert.equal(tx.raw, raw)
      await tx.saveCheckpoint(ROW as never, { owner: 'o', turn: 1 })
      return 7
    })
    assert.equal(value, 7)
    assert.deepEqual(saved, [[BOXED_ROW, { owner: 'o', turn: 1 }]])
  })
})
