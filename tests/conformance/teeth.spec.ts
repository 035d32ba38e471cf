import { test } from '@japa/runner'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { deliveredRow } from '../../src/store/ports/turn_commits.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import type { WorkflowRun } from '../../src/types/run.ts'
import {
  STATE_STORE_CASES,
  type StoreCase,
  type StoreUnderTest,
} from '../../src/testing/contracts/state_store.ts'
import { DEFECTS_OF_CHILDREN } from './defects_of_children.ts'

/** Defects that custom stores really have: what is wrong, and the members that make it so. */
type Defect = (store: InMemoryStateStore) => Partial<StateStore>

const pause = () => new Promise<void>((resolve) => setImmediate(resolve))

const DEFECTS: Record<string, Defect> = {
  'createRun overwrites': (store) => ({
    createRun: async (run) => {
      await store.deleteRun(run.id)
      await store.createRun(run)
    },
  }),
  'updateRun drops keys that are undefined': (store) => ({
    updateRun: (id, patch) => {
      const entries = Object.entries(patch).filter(([, value]) => value !== undefined)
      return store.updateRun(id, Object.fromEntries(entries) as Partial<WorkflowRun>)
    },
  }),
  'updateRunIf reads, then writes': (store) => ({
    updateRunIf: async (id, expected, patch) => {
      const run = await store.getRun(id)
      await pause()
      if (!run || !expected.includes(run.status)) return false
      await store.updateRun(id, patch)
      return true
    },
  }),
  'updateRunIf ignores the status': (store) => ({
    updateRunIf: async (id, _expected, patch) => {
      await store.updateRun(id, patch)
      return true
    },
  }),
  'deleteRun leaves checkpoints': (store) => ({
    deleteRun: async (id) => {
      const rows = await store.listCheckpoints(id)
      await store.deleteRun(id)
      for (const row of rows) await store.saveCheckpoint(row)
    },
  }),
  'saveCheckpoint merges': (store) => ({
    saveCheckpoint: async (row) =>
      store.saveCheckpoint({ ...(await store.getCheckpoint(row.runId, row.seq)), ...row }),
  }),
  'listCheckpoints is in the order of writing': (store) => ({
    listCheckpoints: async (id) => {
      const rows = await store.listCheckpoints(id)
      return rows.reverse()
    },
  }),
  'tryLockRun lets its holder in again': (store) => ({
    tryLockRun: async (id, owner, until, now) =>
      (await store.renewRunLock(id, owner, until)) || store.tryLockRun(id, owner, until, now),
  }),
  'tryLockRun is late by a millisecond': (store) => ({
    tryLockRun: (id, owner, until, now) => store.tryLockRun(id, owner, until, now - 1),
  }),
  'releaseRunLock ignores the owner': (store) => ({
    releaseRunLock: (id) => store.releaseRunLock(id),
  }),
  'listPendingRuns comes newest first': (store) => ({
    listPendingRuns: async (limit, namespace) => {
      const runs = await store.listPendingRuns(999, namespace)
      return runs.reverse().slice(0, limit)
    },
  }),
  'listPendingRuns filters after its limit': (store) => ({
    listPendingRuns: async (limit, namespace) => {
      const runs = await store.listPendingRuns(limit)
      return runs.filter((run) => namespace === undefined || run.namespace === namespace)
    },
  }),
  'listDueTimers forgets wake requests': (store) => ({
    listDueTimers: async (now, namespace, limit) => {
      const runs = await store.listDueTimers(now, namespace, limit)
      return runs.filter((run) => run.wakeAt !== undefined && run.wakeAt <= now)
    },
  }),
  'listRuns ignores its page': (store) => ({
    listRuns: ({ page, size, ...query }) => store.listRuns(query),
  }),
  'listRuns invents a window': (store) => ({
    listRuns: (query) => store.listRuns({ size: 100, ...query }),
  }),
  'takeSignalWaiter reads, then removes': (store) => ({
    takeSignalWaiter: async (token) => {
      const waiters = await store.listSignalWaiters(token)
      const waiter = waiters.find((each) => each.token === token)
      await pause()
      if (waiter) await store.removeSignalWaiter(waiter)
      return waiter ?? null
    },
  }),
  'removeSignalWaiter takes whoever waits': (store) => ({
    removeSignalWaiter: async ({ token }) => void (await store.takeSignalWaiter(token)),
  }),
  'takeBufferedSignal loses undefined': (store) => ({
    takeBufferedSignal: async (token) => {
      const taken = await store.takeBufferedSignal(token)
      return taken?.payload === undefined ? null : taken
    },
  }),
  'removeBufferedEvent always claims': (store) => ({
    removeBufferedEvent: async (id) => {
      await store.removeBufferedEvent(id)
      return true
    },
  }),
  'saveCheckpointIfPending inserts': (store) => ({
    saveCheckpointIfPending: async (row) => {
      const stored = await store.getCheckpoint(row.runId, row.seq)
      if (stored) return store.saveCheckpointIfPending(row)
      await store.saveCheckpoint(row)
      return true
    },
  }),
  'countCheckpoints excludes its upper bound': (store) => ({
    countCheckpoints: (id, range) =>
      store.countCheckpoints(id, {
        ...range,
        ...(range.toSeq === undefined ? {} : { toSeq: range.toSeq - 1 }),
      }),
  }),
  'settleCheckpointsIfPending replaces the row': (store) => ({
    settleCheckpointsIfPending: (settlements) =>
      store.saveCheckpointsIfPending(
        settlements.map(
          (each) => ({ name: 'x', kind: 'remote', attempts: 1, stepId: 's', ...each }) as never
        )
      ),
  }),
  'queryCheckpoints loses the ungrouped': (store) => ({
    queryCheckpoints: async (id, query) => {
      const rows = await store.queryCheckpoints(id, query)
      return query.excludeGroups ? rows.filter((row) => row.parallelGroup) : rows
    },
  }),
  'compactCheckpoints folds open rows': (store) => ({
    compactCheckpoints: async (id, { fromSeq, toSeq }, folded) => {
      for (const row of await store.listCheckpoints(id)) {
        if (row.seq >= fromSeq && row.seq <= toSeq) {
          await store.saveCheckpoint({ ...row, status: 'completed' })
        }
      }
      return store.compactCheckpoints(id, { fromSeq, toSeq }, folded)
    },
  }),
  'tryAdmitSingleton is fenced by namespace': (store) => ({
    tryAdmitSingleton: async (claim) => {
      const run = await store.getRun(claim.runId)
      if (!run) return store.tryAdmitSingleton(claim)
      const runs = await store.listRuns({ tag: claim.tag, namespace: run.namespace })
      return runs.length === 1 ? { admitted: true } : store.tryAdmitSingleton(claim)
    },
  }),
  'a transaction keeps what it wrote before it threw': (store) => ({
    transaction: async (work) =>
      work({ raw: store, saveCheckpoint: (row) => store.saveCheckpoint(row) }),
  }),
  'commitTurn ignores the turn': (store) => ({
    commitTurn: async (commit) => {
      const run = await store.getRun(commit.runId)
      return store.commitTurn({ ...commit, turn: run?.turns ?? commit.turn })
    },
  }),
  'commitTurn ignores the owner': (store) => ({
    commitTurn: async (commit) => {
      const run = await store.getRun(commit.runId)
      return store.commitTurn({ ...commit, owner: run?.lockedBy ?? commit.owner })
    },
  }),
  'commitTurn checks first and writes later': (store) => ({
    commitTurn: async (commit) => {
      const verdict = await store.commitTurn({ ...commit, rows: [], settle: undefined })
      await pause()
      if (!verdict.applied) return verdict
      for (const { row } of commit.rows ?? []) await store.saveCheckpoint(row)
      return commit.settle ? store.commitTurn({ ...commit, rows: [] }) : verdict
    },
  }),
  'commitTurn never names losers': (store) => ({
    commitTurn: async (commit) => ({ ...(await store.commitTurn(commit)), stored: [] }),
  }),
  'commitTurn ignores retryOf': (store) => ({
    commitTurn: (commit) =>
      store.commitTurn({ ...commit, rows: commit.rows?.map(({ row }) => ({ row })) }),
  }),
  'commitTurn registers without looking': (store) => ({
    commitTurn: async ({ waits, ...commit }) => {
      const verdict = await store.commitTurn(commit)
      for (const { waiter } of waits ?? []) await store.putSignalWaiter(waiter)
      return verdict
    },
  }),
  'commitTurn settles under a cancel intent': (store) => ({
    commitTurn: ({ settle, ...commit }) =>
      store.commitTurn({
        ...commit,
        settle: settle && { ...settle, evenIfCancelRequested: true },
      }),
  }),
  'commitTurn forgets second looks': (store) => ({
    commitTurn: ({ settle, ...commit }) =>
      store.commitTurn({ ...commit, settle: settle && { ...settle, looks: [] } }),
  }),
  'commitTurn keeps the lease': (store) => ({
    commitTurn: async (commit) => {
      const before = await store.getRun(commit.runId)
      const verdict = await store.commitTurn(commit)
      if (verdict.applied) {
        const { lockedBy, lockedUntil } = before!
        await store.updateRun(commit.runId, { lockedBy, lockedUntil })
      }
      return verdict
    },
  }),
  'deliverSignal forgets the wake': (store) => ({
    deliverSignal: async (delivery) => {
      const outcome = await store.deliverSignal(delivery)
      if (outcome.delivered) await store.updateRun(outcome.runId, { wakeRequestedAt: undefined })
      return outcome
    },
  }),
  'deliverSignal drops what comes for a wait that ended': (store) => ({
    deliverSignal: async (delivery) => {
      const waited = await store.hasSignalWaiter(delivery.token)
      const outcome = await store.deliverSignal(delivery)
      if (waited && !outcome.delivered) await store.takeBufferedSignal(delivery.token)
      return outcome
    },
  }),
  'deliverSignal decides before it writes': (store) => ({
    deliverSignal: async ({ token, payload, nowMs, buffer }) => {
      const waiters = await store.listSignalWaiters(token)
      const waiter = waiters.find((each) => each.token === token)
      await pause()
      if (!waiter) return store.deliverSignal({ token, payload, nowMs, buffer })
      await store.takeSignalWaiter(token)
      await store.saveCheckpoint(deliveredRow(waiter, payload, nowMs))
      await store.updateRun(waiter.runId, { wakeRequestedAt: nowMs })
      return { delivered: true, runId: waiter.runId, seq: waiter.seq }
    },
  }),
  'pairSignal takes the newest': (store) => ({
    pairSignal: async (token, now) => {
      const oldest = await store.takeBufferedSignal(token)
      const outcome = await store.pairSignal(token, now)
      if (oldest) await store.bufferSignal(token, oldest.payload)
      return outcome
    },
  }),
  'claimRun clears a later request': (store) => ({
    updateRun: (id, patch) =>
      store.updateRun(
        id,
        'wakeRequestedAt' in patch ? { ...patch, wakeRequestedAt: undefined } : patch
      ),
  }),
  'claimRun does not count': (store) => ({
    claimRun: async (claim) => {
      const claimed = await store.claimRun(claim)
      if (claimed) await store.updateRun(claim.runId, { turns: claimed.previousTurns })
      return claimed
    },
  }),
  'claimRun takes what another holds': (store) => ({
    claimRun: (claim) => store.claimRun({ ...claim, nowMs: claim.leaseUntilMs + 1 }),
  }),
  'claimDueRuns forgets blocked runs': (store) => ({
    claimDueRuns: async (claim) => {
      const claimed = await store.claimDueRuns(claim)
      return claimed.filter((each) => each.previousStatus !== 'blocked')
    },
  }),
  'claimDueRuns ignores exclusions': (store) => ({
    claimDueRuns: (claim) => store.claimDueRuns({ ...claim, exclude: [] }),
  }),
  'settleTargets carries inputs': (store) => ({
    settleTargets: async (keys) => {
      const targets = await store.settleTargets(keys)
      for (const target of targets) {
        const { runId, seq } = target.checkpoint
        const whole = await store.getCheckpoint(runId, seq)
        target.checkpoint = whole!
      }
      return targets
    },
  }),
}

/** A case that a store with this defect fails. */
async function failingCase(defect: Defect): Promise<string | undefined> {
  const names = Object.keys(defect(new InMemoryStateStore()))
  const about = (each: StoreCase) => each.requires?.some((name) => names.includes(name)) ?? false
  const likelyFirst = [...STATE_STORE_CASES].sort((a, b) => Number(about(b)) - Number(about(a)))
  for (const each of likelyFirst) {
    const store = new InMemoryStateStore()
    const sound = new InMemoryStateStore()
    const members = defect(sound)
    const broken = new Proxy(store, {
      get(_target, name) {
        const own = members[name as keyof StateStore]
        if (own) return own
        const value = Reflect.get(sound, name, sound) as unknown
        return typeof value === 'function' ? value.bind(sound) : value
      },
    })
    const present = (each.requires ?? []).every(
      (name) => typeof broken[name as never] === 'function'
    )
    if (!present) continue
    try {
      await each.run(broken as unknown as StoreUnderTest)
    } catch {
      return each.name
    }
  }
  return undefined
}

test.group('the state-store contract notices', () => {
  for (const [what, defect] of Object.entries({ ...DEFECTS, ...DEFECTS_OF_CHILDREN })) {
    test(what, async ({ assert }) => {
      assert.isDefined(await failingCase(defect), 'no case fails')
    }).timeout(30_000)
  }
})
