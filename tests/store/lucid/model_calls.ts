/*
 * The calls of the model: each draws its arguments once, for both stores.
 */
import type { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import type { InMemoryStateStore } from '../../../src/store/memory/memory_store.ts'
import { withoutBeat } from '../../../src/store/ports/checkpoint_rules.ts'
import type { RunStatus } from '../../../src/types/run.ts'
import { type Dice, present, RUNS, STATUSES, without } from './dice.ts'

type Shared = Exclude<keyof LucidStateStore & keyof InMemoryStateStore, 'withScope'>
export type Both = Pick<LucidStateStore, Shared> & {
  withScope(scope: { namespace?: string }): Both
}
type Call = { text: string; on: (store: Both) => Promise<unknown> }

export const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1)

const CALLS_BY_NAME: Record<string, (d: Dice, nowMs: number) => [string, Call['on']]> = {}

export function randomCall(dice: Dice, nowMs: number): Call {
  const [text, on] = CALLS_BY_NAME[dice.one(Object.keys(CALLS_BY_NAME))](dice, nowMs)
  return { text, on }
}

/** Registers a call: arguments are drawn once, then given to both stores. */
function call<Args>(
  name: string,
  draw: (d: Dice, nowMs: number) => Args,
  on: (store: Both, args: Args) => Promise<unknown>
) {
  CALLS_BY_NAME[name] = (d, nowMs) => {
    const args = draw(d, nowMs)
    return [`${name} ${JSON.stringify(args)}`, (store) => on(store, args)]
  }
}

for (const copy of ['', ' again']) {
  call(
    `createRun${copy}`,
    (d, now) => d.newRun(d.run(), now),
    (s, run) => s.createRun(run)
  )
  call(
    `claimRun${copy}`,
    (d, nowMs) => ({
      runId: d.run(),
      owner: d.owner(),
      leaseUntilMs: nowMs + 60,
      nowMs,
      from: d.one<RunStatus[]>([['pending', 'suspended', 'blocked'], ['failed'], []]),
      namespace: d.namespace(),
    }),
    (s, claim) => s.claimRun(claim)
  )
}
call(
  'updateRun',
  (d, now) => [d.run(), d.patch(now)] as const,
  (s, [id, patch]) => s.updateRun(id, patch)
)
call(
  'updateRunIf',
  (d, now) => [d.run(), d.some(() => d.one(STATUSES)), d.patch(now)] as const,
  (s, [id, expected, patch]) => s.updateRunIf(id, expected, patch)
)
call(
  'getRun',
  (d) => d.run(),
  (s, id) => s.getRun(id)
)
call(
  'tryLockRun',
  (d, now) => [d.run(), d.owner(), now + 50, now] as const,
  (s, [id, owner, until, now]) => s.tryLockRun(id, owner, until, now)
)
call(
  'renewRunLock',
  (d, now) => [d.run(), d.owner(), now + 50] as const,
  (s, [id, owner, until]) => s.renewRunLock(id, owner, until)
)
call(
  'releaseRunLock',
  (d) => [d.run(), d.maybe(d.owner(), 0.9)] as const,
  (s, [id, owner]) => s.releaseRunLock(id, owner)
)
call(
  'claimDueRuns',
  (d, nowMs) => ({
    kind: d.one(['pending', 'due'] as const),
    owner: d.owner(),
    leaseUntilMs: nowMs + 60,
    nowMs,
    namespace: d.namespace(),
    limit: d.below(3),
    exclude: d.maybe([d.run()], 0.3),
  }),
  (s, claim) => s.claimDueRuns(claim)
)
call(
  'deleteRun',
  (d) => d.maybe(d.run(), 0.3) ?? 'none',
  (s, id) => s.deleteRun(id)
)
call(
  'lists',
  (d, now) => [d.namespace(), now, d.maybe(d.below(3))] as const,
  async (s, [namespace, now, limit]) => [
    await s.listIncompleteRuns(namespace),
    await s.listPendingRuns(limit ?? 9, namespace),
    await s.listDueTimers(now, namespace, limit),
    await s.listOrphanedRuns(now, namespace, limit),
    await s.listUnfinishedCancels(namespace, limit),
    await s.listOverdueRuns(now, namespace, limit),
  ]
)
call(
  'getRuns',
  (d) => d.some(d.run, 5),
  async (s, ids) => {
    const runs = await s.getRuns(ids)
    return runs.sort(byId)
  }
)
call(
  'listRuns',
  (d, now) => ({
    ...present({
      workflow: d.maybe('w1', 0.3),
      status: d.maybe(d.one(STATUSES), 0.2),
      statuses: d.maybe(
        d.some(() => d.one(STATUSES)),
        0.2
      ),
      namespace: d.namespace(),
      tag: d.maybe('one', 0.2),
      attributes: d.maybe(
        [
          {
            key: d.one(['n', 's', 'b']),
            op: d.one(['eq', 'ne', 'gt', 'lte'] as const),
            value: d.one<string | number | boolean>([2, 't1', true]),
          },
        ],
        0.3
      ),
      wakeBefore: d.maybe(now, 0.2),
      before: d.maybe({ createdAt: now - d.below(99), id: 'b' }, 0.2),
      oldestFirst: d.maybe(true, 0.1),
    }),
    page: 1 + d.below(2),
    size: d.below(4),
  }),
  async (s, query) => [await s.listRuns(query), await s.countRuns(query)]
)
call(
  'saveCheckpoint',
  (d, now) => d.row(d.run(), d.seq(), now),
  (s, row) => s.saveCheckpoint(row)
)
call(
  'saveCheckpointsIfPending',
  (d, now) =>
    d.some(
      () => ({ ...d.row(d.run(), d.seq(), now), status: d.one(['completed', 'failed'] as const) }),
      5
    ),
  async (s, rows) => [
    await s.saveCheckpointsIfPending(rows),
    rows[0] && (await s.saveCheckpointIfPending(rows[0])),
  ]
)
call(
  'settleCheckpointsIfPending',
  (d, nowMs) =>
    d.some(
      () => ({
        runId: d.run(),
        seq: d.seq(),
        status: d.one(['completed', 'failed'] as const),
        finishedAt: new Date(nowMs),
        ...present({
          output: d.payload(),
          error: d.maybe({ message: 'late' }, 0.3),
          events: d.maybe([{ at: nowMs, level: 'info' as const, message: 'm' }], 0.2),
          startedAt: d.maybe(new Date(nowMs - 5)),
          wakeAt: d.maybe(null),
        }),
      }),
      5
    ),
  (s, settlements) => s.settleCheckpointsIfPending(settlements)
)
call(
  'recordStepHeartbeat',
  (d, now) => [d.run(), d.seq(), new Date(now), d.payload()] as const,
  (s, [id, seq, at, progress]) => s.recordStepHeartbeat(id, seq, at, progress)
)
call(
  'checkpoint reads',
  (d) => [d.run(), d.seq(), d.seq(), d.some(d.seq), d.one(['pending', 'failed'] as const)] as const,
  async (s, [id, fromSeq, toSeq, seqs, status]) => [
    await s.listCheckpointsForReplay(id),
    await s.listCheckpointsAt(id, seqs, fromSeq),
    await s.hasCheckpoints(id, { fromSeq, toSeq, statuses: [status] }),
    await s.countCheckpoints(id, { fromSeq, statuses: [status, 'completed'] }),
    await s.getLatestCheckpointByName(id, `n${toSeq % 3}`),
    await s.listCheckpointsByNamePrefix(id, ['n1', 'n', 'x']),
    await s.getCheckpoints([{ runId: id, seq: fromSeq }]),
    await s.getCheckpointsForSettle([{ runId: id, seq: fromSeq }]),
    await s.settleTargets([{ runId: id, seq: fromSeq }]),
  ]
)
call(
  'signals',
  (d, now) => [d.waiter(d.run(), d.seq(), now), d.below(4)] as const,
  async (s, [waiter, which]) => {
    if (which === 0) return s.putSignalWaiter(waiter)
    if (which === 1) return s.takeSignalWaiter(waiter.token)
    if (which === 2) return s.removeSignalWaiter(waiter)
    const waiters = await s.listSignalWaitersByRunIds([waiter.runId])
    return [await s.hasSignalWaiter(waiter.token), waiters.map(({ token }) => token).sort()]
  }
)
call(
  'buffers',
  (d) => [d.token(), d.payload(), d.next() < 0.6] as const,
  (s, [token, payload, puts]) =>
    puts ? s.bufferSignal(token, payload) : s.takeBufferedSignal(token)
)
call(
  'deliverSignal',
  (d, nowMs) => ({
    token: d.token(),
    payload: d.payload(),
    nowMs,
    buffer: d.next() < 0.7,
    urgent: d.maybe(true),
  }),
  (s, delivery) => s.deliverSignal(delivery)
)
call(
  'pairSignal',
  (d, now) => [d.token(), now] as const,
  (s, [token, now]) => s.pairSignal(token, now)
)
call(
  'events',
  (d, now) => [d.one(['e1', 'e2', 'e3']), d.payload(), now - d.below(30), now - 40] as const,
  async (s, [id, payload, publishedAt, before]) => [
    await s.listBufferedEvents('news', 2),
    await s.bufferEvent({ id, name: 'news', payload, publishedAt }),
    await s.pruneBufferedEvents(before, 1),
    await s.removeBufferedEvent(id === 'e1' ? 'e2' : 'none'),
  ]
)
for (const copy of ['', ' again']) {
  call(
    `tryAdmitSingleton${copy}`,
    (d, nowMs) => ({
      runId: d.run(),
      workflow: d.one(['w1', 'w2']),
      tag: d.one(['singleton:k', 'singleton:k', 'one']),
      limit: 1 + d.below(2),
      retryAt: nowMs + 20,
      nowMs,
    }),
    (s, claim) => s.tryAdmitSingleton(claim)
  )
}
call(
  'views',
  (d, now) => [d.namespace(), d.maybe(d.namespace()), d.namespace(), now, d.run()] as const,
  async (s, [outer, inner, namespace, now, id]) => {
    const view = s.withScope({ namespace: outer }).withScope({ namespace: inner })
    const runs = await view.getRuns(RUNS)
    return [
      await view.getRun(id),
      runs.sort(byId),
      await view.listRuns({ namespace }),
      await view.countRuns({ namespace }),
      await view.runValueFacets('namespace', { namespace }),
      await view.listPendingRuns(9, namespace),
      await view.listDueTimers(now, namespace),
      await view.listOrphanedRuns(now, namespace),
    ]
  }
)
call(
  'registerChildWaits',
  (d, now) =>
    d.some(() => {
      const waiter = d.waiter(d.run(), d.seq(), now)
      const row = { ...d.row(waiter.runId, waiter.seq, now), status: 'running' as const }
      return { waiter, checkpoint: withoutBeat(row) }
    }),
  (s, waits) => s.registerChildWaits(waits)
)
call(
  'schedules',
  (d, now) => [d.one(['a', 'A', 'b']), d.schedule(now), d.below(5), d.maybe(true)] as const,
  async (s, [id, { createdAt, updatedAt, ...fields }, which, paused]) => {
    if (which === 0) return s.createSchedule({ id, createdAt, updatedAt, ...fields })
    if (which === 1) return s.deleteSchedule(id)
    if (which === 2) return [await s.getSchedule(id), await s.listSchedules({ paused })]
    return s.updateSchedule(id, { ...fields, updatedAt })
  }
)
for (const copy of ['', ' again', ' once more']) {
  call(
    `commitTurn${copy}`,
    (d, nowMs) => {
      const runId = d.run()
      const write = () => ({
        row: d.row(runId, d.seq(), nowMs),
        ...present({ retryOf: d.maybe(1 + d.below(2), 0.3) }),
      })
      const wait = () => {
        const waiter = d.waiter(runId, d.seq(), nowMs)
        const row = d.row(runId, waiter.seq, nowMs)
        return { waiter, row: { ...row, status: 'completed' as const, output: undefined } }
      }
      const expiry = () => {
        const { waiter, row } = wait()
        return { waiter, row: { ...row, status: 'failed' as const } }
      }
      // One id is started or awaited, and nobody awaits itself.
      const others = RUNS.filter((id) => id !== runId)
      const begins = d.one(others)
      const child = () => ({ ...d.newRun(d.one(others), nowMs), awaited: true })
      return {
        runId,
        owner: d.owner(),
        turn: d.turn(),
        nowMs,
        rows: d.some(write),
        waits: d.some(wait, 2),
        expiries: d.some(expiry, 1),
        stamps: d.some(() => ({ seq: d.seq(), order: d.below(9) }), 2),
        runs: d.some(() => d.newRun(begins, nowMs), 1),
        ...present({
          children: d.maybe(
            d.some(child).filter(({ id }) => id !== begins),
            0.6
          ),
        }),
        settle: d.maybe(
          {
            status: d.one(STATUSES),
            // A settle never carries a wake request.
            patch: without(d.patch(nowMs), 'wakeRequestedAt'),
            looks: d.some(wait, 2),
            ...present({ rekey: d.maybe({ from: d.token(), to: d.token() }) }),
          },
          0.3
        ),
      }
    },
    (s, commit) => s.commitTurn(commit)
  )
}
