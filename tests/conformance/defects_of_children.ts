/*
 * Defects of custom stores around children, chains, waves and time limits: what is wrong, and the members that make it so.
 */
import type { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { LIVE_RUN_STATUSES, type WorkflowRun } from '../../src/types/run.ts'
import type { SignalDelivery } from '../../src/store/ports/turn_commits.ts'

type Defect = (store: InMemoryStateStore) => Partial<StateStore>

const pause = () => new Promise<void>((resolve) => setImmediate(resolve))

const delivering =
  (fields: Partial<SignalDelivery>): Defect =>
  (store) => ({ deliverSignal: (given) => store.deliverSignal({ ...given, ...fields }) })

const overdue =
  (store: InMemoryStateStore, accept: (run: WorkflowRun) => boolean) =>
  async (nowMs: number, namespace?: string, limit?: number): Promise<WorkflowRun[]> => {
    const runs = await store.listRuns(namespace === undefined ? {} : { namespace })
    return runs
      .filter(({ deadlineAt = Infinity }) => deadlineAt <= nowMs)
      .filter(accept)
      .sort((a, b) => a.deadlineAt! - b.deadlineAt! || (a.id < b.id ? -1 : 1))
      .slice(0, limit)
  }

export const DEFECTS_OF_CHILDREN: Record<string, Defect> = {
  'commitTurn leaves a child that exists unmarked': (store) => ({
    commitTurn: ({ children, ...commit }) =>
      store.commitTurn({ ...commit, runs: [...(commit.runs ?? []), ...(children ?? [])] }),
  }),
  'commitTurn replaces a child that exists': (store) => ({
    commitTurn: async (commit) => {
      const verdict = await store.commitTurn(commit)
      if (!verdict.applied) return verdict
      for (const child of commit.children ?? []) {
        await store.deleteRun(child.id)
        await store.createRun(child)
      }
      return verdict
    },
  }),
  'commitTurn tells a state of children it inserted': (store) => ({
    commitTurn: async (commit) => {
      const verdict = await store.commitTurn(commit)
      if (!verdict.children) return verdict
      const { children = [] } = commit
      return { ...verdict, children: children.map(({ id, status }) => ({ id, status })) }
    },
  }),
  'commitTurn begets the children of a refused commit': (store) => ({
    commitTurn: async (commit) => {
      for (const child of commit.children ?? []) {
        if (!(await store.getRun(child.id))) await store.createRun(child)
      }
      return store.commitTurn(commit)
    },
  }),
  'commitTurn reads a child, then marks it': (store) => ({
    commitTurn: async ({ children, ...commit }) => {
      if (!children) return store.commitTurn(commit)
      const states = await store.getRuns(children.map(({ id }) => id))
      await pause()
      const verdict = await store.commitTurn({ ...commit, children })
      return verdict.applied ? { ...verdict, children: states } : verdict
    },
  }),
  'commitTurn forgets to move the waiter of a chain': (store) => ({
    commitTurn: ({ settle, ...commit }) =>
      store.commitTurn({ ...commit, settle: settle && { ...settle, rekey: undefined } }),
  }),
  'commitTurn moves the waiter of a chain that goes not on': (store) => ({
    commitTurn: async (commit) => {
      const { from, to } = commit.settle?.rekey ?? {}
      const waiter = from && (await store.takeSignalWaiter(from))
      if (waiter) await store.putSignalWaiter({ ...waiter, token: to! })
      return store.commitTurn(commit)
    },
  }),
  'commitTurn loses the group of a waiter it moves': (store) => ({
    commitTurn: async (commit) => {
      const verdict = await store.commitTurn(commit)
      const { to } = commit.settle?.rekey ?? {}
      const waiter = to && verdict.applied ? await store.takeSignalWaiter(to) : null
      if (waiter) await store.putSignalWaiter({ ...waiter, parallelGroup: undefined })
      return verdict
    },
  }),
  'deliverSignal wakes inside an awaited range': (store) => ({
    deliverSignal: async (delivery) => {
      const outcome = await store.deliverSignal(delivery)
      if (outcome.delivered) {
        await store.updateRun(outcome.runId, { wakeRequestedAt: delivery.nowMs })
      }
      return outcome
    },
  }),
  'deliverSignal never tells the range': (store) => ({
    deliverSignal: async (delivery) => {
      const outcome = await store.deliverSignal(delivery)
      const { wave, ...rest } = outcome as typeof outcome & { wave?: unknown }
      return rest as typeof outcome
    },
  }),
  'deliverSignal takes no failure as urgent': delivering({ urgent: false }),
  'deliverSignal takes everything as urgent': delivering({ urgent: true }),
  'pairSignal wakes inside an awaited range': (store) => ({
    pairSignal: async (token, nowMs) => {
      const outcome = await store.pairSignal(token, nowMs)
      if (outcome.delivered) await store.updateRun(outcome.runId, { wakeRequestedAt: nowMs })
      return outcome
    },
  }),
  'getRuns answers doubles': (store) => ({
    getRuns: async (ids) => {
      const runs = await Promise.all(ids.map((id) => store.getRun(id)))
      return runs.filter((run) => run !== null)
    },
  }),
  'listUnfinishedCancels lists every mark': (store) => ({
    listUnfinishedCancels: async (namespace, limit) => {
      const runs = await store.listRuns(namespace === undefined ? {} : { namespace })
      const marked = runs.filter((run) => run.cancelRequestedAt !== undefined)
      return marked
        .sort((a, b) => a.cancelRequestedAt! - b.cancelRequestedAt! || (a.id < b.id ? -1 : 1))
        .slice(0, limit)
    },
  }),
  'listUnfinishedCancels filters after its limit': (store) => ({
    listUnfinishedCancels: async (namespace, limit) => {
      const runs = await store.listUnfinishedCancels(undefined, limit)
      return runs.filter((run) => namespace === undefined || run.namespace === namespace)
    },
  }),
  'listOverdueRuns lists what is over': (store) => ({
    listOverdueRuns: overdue(store, () => true),
  }),
  'listOverdueRuns lists what is being cancelled': (store) => ({
    listOverdueRuns: overdue(store, (run) => LIVE_RUN_STATUSES.includes(run.status)),
  }),
  'listOverdueRuns is late by a millisecond': (store) => ({
    listOverdueRuns: (nowMs, namespace, limit) =>
      store.listOverdueRuns(nowMs - 1, namespace, limit),
  }),
  'listOverdueRuns comes oldest run first': (store) => ({
    listOverdueRuns: async (nowMs, namespace, limit) => {
      const runs = await store.listOverdueRuns(nowMs, namespace)
      return runs.sort((a, b) => Number(a.createdAt) - Number(b.createdAt)).slice(0, limit)
    },
  }),
  'listOverdueRuns filters after its limit': (store) => ({
    listOverdueRuns: async (nowMs, namespace, limit) => {
      const runs = await store.listOverdueRuns(nowMs, undefined, limit)
      return runs.filter((run) => namespace === undefined || run.namespace === namespace)
    },
  }),
  'saveCheckpointsIfPending saves one row twice': (store) => ({
    saveCheckpointsIfPending: (rows) =>
      Promise.all(rows.map((row) => store.saveCheckpointIfPending(row))),
  }),
}
