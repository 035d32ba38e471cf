/*
 * What polls, turns, results and admission do, over and over.
 */
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import type { RunStatus } from '../../src/types/run.ts'
import { ALL_LIVE, type Call, type Case, count, lengthOf, list, LIVE, LIVE_MUTEX } from './case.ts'
import { LONG_RUN, LONG_TIMELINE, NOW } from './fill.ts'

const claim =
  (kind: 'pending' | 'due', limit: number, namespace?: string): Call =>
  (store) => {
    const lease = { owner: 'w', leaseUntilMs: NOW + 60_000, nowMs: NOW }
    return lengthOf(store.claimDueRuns({ ...lease, kind, limit, namespace }))
  }

const truthOf = async (values: Promise<boolean[]>): Promise<number> => {
  const verdicts = await values
  return verdicts.filter(Boolean).length
}

const keysOf = (runIds: string[]) => runIds.map((runId) => ({ runId, seq: 3 }))

const row = (runId: string): StepCheckpoint => ({
  runId,
  seq: 3,
  name: 'step-3',
  kind: 'remote',
  stepId: `${runId}:3`,
  status: 'completed',
  attempts: 1,
  output: { ok: true },
  enqueuedAt: new Date(NOW),
  startedAt: new Date(NOW),
  finishedAt: new Date(NOW),
})

const polls: Case[] = [
  { name: 'claim pending, 100', call: claim('pending', 100), times: 3, plus: 20 },
  {
    name: 'claim pending of a namespace, 100',
    call: claim('pending', 100, 'tenant-8'),
    times: 3,
    plus: 20,
  },
  // Ordered within each of three indexes, then merged.
  { name: 'claim due, 500', call: claim('due', 500), times: 5, plus: 20 },
  {
    name: 'claim due of a namespace, 500',
    call: claim('due', 500, 'tenant-8'),
    times: 3,
    plus: 20,
    basis: {
      words: 'due, any namespace',
      where: `(status = 'suspended' AND (wake_at <= ${NOW} OR wake_requested_at IS NOT NULL)) OR (status = 'blocked' AND wake_at <= ${NOW})`,
    },
  },
  {
    name: 'list pending, 100',
    call: (store) => lengthOf(store.listPendingRuns(100)),
    times: 2,
    plus: 20,
  },
  {
    name: 'list due, 500',
    call: (store) => lengthOf(store.listDueTimers(NOW, undefined, 500)),
    times: 3,
    plus: 20,
  },
  {
    name: 'orphans, 100',
    call: (store) => lengthOf(store.listOrphanedRuns(NOW, undefined, 100)),
    times: 2,
    plus: 20,
  },
  {
    name: 'running, all',
    call: (store) => lengthOf(store.listIncompleteRuns()),
    times: 1,
    plus: 20,
  },
  {
    name: 'unfinished cancels, 50',
    call: (store) => lengthOf(store.listUnfinishedCancels(undefined, 50)),
    times: 2,
    plus: 120,
  },
  // On MySQL so many of each live status.
  {
    name: 'overdue, 50',
    call: (store) => lengthOf(store.listOverdueRuns(NOW, undefined, 50)),
    times: 4,
    plus: 20,
  },
  {
    name: 'blocked and due, 50',
    call: list({ status: 'blocked', wakeBefore: NOW, size: 50 }),
    times: 2,
    plus: 20,
    basis: { words: 'blocked', where: `status = 'blocked'` },
  },
]

const points: Case[] = [
  {
    name: 'claim one run',
    call: async (store, { pending }) =>
      (await store.claimRun({
        runId: pending,
        owner: 'w',
        leaseUntilMs: NOW + 1,
        nowMs: NOW,
        from: ['pending'],
      }))
        ? 1
        : 0,
    times: 3,
    plus: 0,
  },
  {
    name: 'runs by id, 100',
    call: (store, { waiting }) => lengthOf(store.getRuns(waiting)),
    times: 1,
    plus: 0,
  },
  {
    name: 'patch while suspended',
    call: async (store, { waiting }) => {
      const patch = { updatedAt: new Date(NOW) }
      return (await store.updateRunIf(waiting[0], ['suspended'], patch)) ? 1 : 0
    },
    times: 2,
    plus: 0,
  },
  {
    name: 'settle targets, 100',
    call: (store, { waiting }) => lengthOf(store.settleTargets(keysOf(waiting))),
    times: 2,
    plus: 0,
  },
  {
    name: 'settle, 100',
    call: async (store, { waiting }) => {
      const results = waiting.map((runId) => ({
        runId,
        seq: 3,
        status: 'completed' as const,
        finishedAt: new Date(NOW),
        output: 1,
      }))
      return truthOf(store.settleCheckpointsIfPending(results))
    },
    times: 3,
    plus: 0,
  },
  {
    name: 'settle whole rows, 100',
    call: async (store, { waiting }) => truthOf(store.saveCheckpointsIfPending(waiting.map(row))),
    times: 3,
    plus: 0,
  },
  {
    name: 'frontier of a fan of 20,000',
    call: async (store) =>
      Number(
        await store.hasCheckpoints(LONG_RUN, {
          fromSeq: 1,
          toSeq: LONG_TIMELINE,
          statuses: ['pending'],
        })
      ),
    times: 1,
    plus: 1,
  },
  {
    name: 'frontier that is done',
    call: async (store) =>
      Number(
        await store.hasCheckpoints(LONG_RUN, {
          fromSeq: 1,
          toSeq: LONG_TIMELINE - 100,
          statuses: ['pending'],
        })
      ),
    times: 1,
    finds: 'nothing',
    plus: 1,
  },
  {
    name: 'open of a fan',
    call: (store) =>
      store.countCheckpoints(LONG_RUN, { fromSeq: 1, toSeq: LONG_TIMELINE, statuses: ['pending'] }),
    times: 1,
    plus: 1,
  },
  {
    name: 'timeline for replay',
    call: (store, { waiting }) => lengthOf(store.listCheckpointsForReplay(waiting[0])),
    times: 1,
    plus: 0,
  },
  {
    name: 'tail of a timeline',
    call: (store) => lengthOf(store.listCheckpointsAt(LONG_RUN, [5, 9], LONG_TIMELINE - 20)),
    times: 1,
    plus: 3,
  },
  {
    name: 'latest of a name',
    call: async (store) => ((await store.getLatestCheckpointByName(LONG_RUN, 'mark')) ? 1 : 0),
    times: 1,
    plus: 1,
  },
  {
    name: 'names with a prefix',
    call: (store) => lengthOf(store.listCheckpointsByNamePrefix(LONG_RUN, ['mark'])),
    times: 1,
    plus: 2,
  },
  {
    name: 'waiters of runs, 100',
    call: (store, { waiting }) => lengthOf(store.listSignalWaitersByRunIds(waiting)),
    times: 1,
    plus: 1,
  },
  {
    name: 'take a signal',
    call: async (store) => ((await store.takeBufferedSignal('early:50')) ? 1 : 0),
    times: 3,
    plus: 0,
  },
  {
    name: 'events of a name, 50',
    call: (store) => lengthOf(store.listBufferedEvents('topic-9', 50)),
    times: 1,
    plus: 60,
  },
  {
    name: 'prune events, 100',
    call: (store) => store.pruneBufferedEvents(NOW, 100),
    times: 3,
    plus: 5,
  },
]

/** As a slot comes free: of those that hold one, at most `limit` come before the waiters. */
const waiters = (status: RunStatus): Case => ({
  name: `singleton waiters, ${status}`,
  call: (store, { singleton: { tag } }) =>
    lengthOf(
      store.listRuns({ workflow: 'mutex', tag, status, oldestFirst: true, page: 1, size: 4 })
    ),
  times: 1,
  plus: 20,
  basis: { words: `${status}, workflow`, where: `workflow = 'mutex' AND status = '${status}'` },
  // Of the big tables no key has one that runs.
  ...(status === 'running' ? { finds: 'nothing' as const } : {}),
})

const flow: Case[] = [
  {
    name: 'singleton claim',
    call: async (store, { singleton }) => {
      await store.tryAdmitSingleton({
        ...singleton,
        workflow: 'mutex',
        limit: 2,
        retryAt: NOW + 1000,
        nowMs: NOW,
      })
      return 1
    },
    times: 3,
    plus: 20,
    basis: LIVE_MUTEX,
  },
  {
    name: 'singleton queue depth',
    call: (store, { singleton: { tag } }) =>
      store.countRuns({ workflow: 'mutex', tag, statuses: LIVE }),
    times: 1,
    plus: 20,
    basis: LIVE_MUTEX,
  },
  waiters('suspended'),
  waiters('running'),
  {
    name: 'quota of a key',
    call: count({ tag: 'vip', statuses: LIVE }),
    times: 1,
    plus: 20,
    basis: ALL_LIVE,
  },
]

export const TURN_CASES: readonly Case[] = [...polls, ...points, ...flow]
