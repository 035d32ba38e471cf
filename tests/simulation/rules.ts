/*
 * Rules that can be switched off from outside the core, each to show that the simulation needs it:
 *
 *   npm run test:simulation -- --off=order --seeds=500
 *
 * A rule is off in the store, in a process's view of it, in the broker or in how processes are named.
 * Not switchable here, since they live inside the core or a turn: that a recorded order makes a timer
 * deliverable, that nothing passes a completion in flight, that an unwound body cannot write, that
 * effects wait for what precedes them, that recovery sends before it parks, that a refused wake is tried
 * once more after its stamp, that a live body asks again what a replay would ask.
 */
import type { StateStore } from '../../src/store/state_store.ts'
import type { ClaimedRun } from '../../src/store/ports/run_claims.ts'
import type { SignalWaiter, StepCheckpoint } from '../../src/types/checkpoint.ts'
import { isTerminalStatus, type WorkflowRun } from '../../src/types/run.ts'

export const RULES = {
  order: 'results are delivered in a recorded order',
  stamp: 'a refused wake stamps the run',
  ack: 'a message is acknowledged only when its wake is handed over',
  owner: 'commits check the lease owner',
  turnfence: 'commits also check the turn number',
  lease: 'a live lease refuses everybody',
  renewal: 'a lost lease is told to its holder',
  turns: 'kept state is used only if nobody took a turn in between',
  unless: 'rows are written unless settled',
  conditional: 'a status is written only over the statuses it was computed from',
  intent: 'an asked-for undo refuses every other end of a turn',
  can: 'continuing as new is one commit',
  take: 'taking a buffered payload and writing its row is one commit',
  claim: 'taking a buffered event and writing its row is one commit',
  opid: 'an entity knows an operation that is sent again by its id',
  attempt: 'a failure ends no later attempt than its own',
  looks: 'both sides of a signal look twice',
  sigwake: 'a delivery stamps the wake in its own commit',
  resend: 'recovery sends again what the lost turn may not have sent',
  nonce: 'a lease owner is unique to its process',
  recowner: 'recovery holds the lease under an owner name of its own',
  undolist: 'the undo list is recorded before the first undo',
  latefail: 'a failure that arrives for a failed run is noted on its row',
  survive: 'a requeued run keeps the failures it survived',
  slot: 'a step that passes a queue waits for a slot',
  once: 'a verdict on taken-back failures is sent once',
} as const

export type RuleName = keyof typeof RULES

export const isRule = (name: string): name is RuleName => Object.hasOwn(RULES, name)

/** What switching a rule off in a store may use. An override takes effect before it returns. */
export interface RuleContext {
  /** By chance. */
  random(): number
  after(ms: number, work: () => void): void
  /** A run as it is now. */
  run(runId: string): WorkflowRun | null
  waiter(token: string): SignalWaiter | null
}

type Override = (store: StateStore, context: RuleContext) => Partial<StateStore>

/** The store without a rule; unchanged for a rule that lives elsewhere. */
export function withoutRule(store: StateStore, rule: RuleName, context: RuleContext): StateStore {
  const override = STORE_RULES[rule]?.(store, context)
  if (!override) return store
  return new Proxy(store, {
    get(target, name) {
      const own: unknown = Reflect.get(override, name)
      if (own !== undefined) return own
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

const STORE_RULES: Partial<Record<RuleName, Override>> = {
  order: (store) => ({
    commitTurn: (commit) =>
      store.commitTurn!({
        ...commit,
        stamps: undefined,
        rows: commit.rows?.map((write) => ({ ...write, row: unordered(write.row) })),
      }),
    transaction: (work) =>
      store.transaction!((tx) =>
        work({ ...tx, saveCheckpoint: (row, fence) => tx.saveCheckpoint(unordered(row), fence) })
      ),
  }),
  stamp: (store) => ({
    updateRunIf: (runId, expected, patch) =>
      isStamp(patch) ? Promise.resolve(true) : store.updateRunIf(runId, expected, patch),
  }),
  owner: (store, { run }) => ({
    commitTurn: (commit) => {
      const { lockedBy, turns = 0 } = run(commit.runId) ?? {}
      return store.commitTurn!({ ...commit, owner: lockedBy as string, turn: turns })
    },
  }),
  turnfence: (store, { run }) => ({
    commitTurn: (commit) => store.commitTurn!({ ...commit, turn: run(commit.runId)?.turns ?? 0 }),
  }),
  lease: (store) => ({
    claimRun: (claim) => store.claimRun!({ ...claim, nowMs: claim.nowMs + 1e9 }),
    tryLockRun: (runId, owner, until, nowMs) => store.tryLockRun(runId, owner, until, nowMs + 1e9),
  }),
  renewal: () => ({ renewRunLock: () => Promise.resolve(true) }),
  unless: (store, { run }) => ({
    commitTurn: (commit) => {
      const { lockedBy, turns, status } = run(commit.runId) ?? {}
      const held = lockedBy === commit.owner && turns === commit.turn
      if (held && status && !isTerminalStatus(status)) {
        for (const { row } of commit.rows ?? []) void store.saveCheckpoint(row)
      }
      return store.commitTurn!({ ...commit, rows: undefined })
    },
  }),
  conditional: (store) => ({
    updateRunIf: (runId, _expected, patch) => store.updateRun(runId, patch).then(() => true),
  }),
  intent: (store) => ({
    commitTurn: (commit) =>
      store.commitTurn!({
        ...commit,
        settle: commit.settle && { ...commit.settle, evenIfCancelRequested: true },
      }),
  }),
  can: (store, { random }) => ({
    commitTurn: (commit) =>
      store.commitTurn!(commit.runs && random() < 0.3 ? { ...commit, runs: [] } : commit),
  }),
  take: (store, { random }) => ({
    commitTurn: (commit) => {
      for (const { waiter } of commit.waits ?? []) {
        if (random() < 0.3) void store.takeBufferedSignal(waiter.token)
      }
      return store.commitTurn!(commit)
    },
  }),
  claim: (store, { random }) => ({
    commitTurn: (commit) => {
      for (const { event } of commit.claims ?? []) {
        if (random() < 0.3) void store.removeBufferedEvent(event.id)
      }
      return store.commitTurn!(commit)
    },
  }),
  opid: (store, { random }) => ({
    deliverSignal: (delivery) =>
      store.deliverSignal!(
        delivery.token.startsWith('entity:') ? renamed(delivery, random()) : delivery
      ),
    bufferSignal: (token, payload) =>
      store.bufferSignal(
        token,
        token.startsWith('entity:') ? renamed({ payload }, random()).payload : payload
      ),
  }),
  attempt: (store) => ({
    settleCheckpointsIfPending: (settlements) =>
      store.settleCheckpointsIfPending!(
        settlements.map((settlement) => ({ ...settlement, upToAttempt: undefined }))
      ),
  }),
  looks: (store) => ({
    commitTurn: (commit) =>
      store.commitTurn!({
        ...commit,
        settle: commit.settle && { ...commit.settle, looks: undefined },
      }),
    pairSignal: () => Promise.resolve({ delivered: false, buffered: false }),
  }),
  sigwake: (store, context) => ({
    deliverSignal: (delivery) =>
      unstamped(store, context, delivery.token, () => store.deliverSignal!(delivery)),
    pairSignal: (token, nowMs) =>
      unstamped(store, context, token, () => store.pairSignal!(token, nowMs)),
  }),
  recowner: (store) => ({
    tryLockRun: (runId, owner, until, nowMs) => store.tryLockRun(runId, bare(owner), until, nowMs),
    releaseRunLock: (runId, owner) => store.releaseRunLock(runId, owner && bare(owner)),
    commitTurn: (commit) => store.commitTurn!({ ...commit, owner: bare(commit.owner) }),
  }),
  undolist: (store) => ({
    commitTurn: (commit) =>
      store.commitTurn!({ ...commit, rows: commit.rows?.filter(({ row }) => !isListed(row)) }),
  }),
  latefail: () => ({ saveCheckpointIfPending: () => Promise.resolve(false) }),
  survive: (store) => ({
    listCheckpointsForReplay: (runId) =>
      store.listCheckpointsForReplay!(runId).then((rows) => rows.map(unjudged)),
  }),
  once: (store, { after }) => ({
    commitTurn: (commit) => {
      const verdict = commit.rows?.some(({ retryOf }) => retryOf === 0)
      if (verdict) after(100, () => void store.commitTurn!(commit))
      return store.commitTurn!(commit)
    },
  }),
}

/** A process's store without the turn check on what it kept. */
export function trusting(store: StateStore): StateStore {
  const last = new Map<string, number>()
  const trust = (claimed: ClaimedRun): ClaimedRun => {
    const { id, turns = 0 } = claimed.run
    const kept = last.get(id)
    last.set(id, turns)
    if (claimed.previousTurns === undefined || kept === undefined) return claimed
    return { ...claimed, previousTurns: kept, previousStatus: 'suspended' }
  }
  return {
    ...store,
    claimRun: async (claim) => {
      const claimed = await store.claimRun!(claim)
      return claimed && trust(claimed)
    },
    claimDueRuns: (claim) => store.claimDueRuns!(claim).then((claims) => claims.map(trust)),
  }
}

const unordered = (row: StepCheckpoint): StepCheckpoint => ({ ...row, order: undefined })

const isStamp = (patch: Partial<WorkflowRun>): boolean =>
  Object.keys(patch).join() === 'wakeRequestedAt'

/** The operation under another id each time. */
function renamed<T extends { payload: unknown }>(delivery: T, tag: number): T {
  const { opId, ...rest } = delivery.payload as { opId: string }
  return { ...delivery, payload: { ...rest, opId: `${tag}:${opId}` } }
}

/** Delivers and takes the stamp of the delivery away again. */
function unstamped<T>(
  store: StateStore,
  { run, waiter }: RuleContext,
  token: string,
  deliver: () => Promise<T>
): Promise<T> {
  const runId = waiter(token)?.runId
  const before = runId === undefined ? undefined : run(runId)?.wakeRequestedAt
  const outcome = deliver()
  if (runId !== undefined) void store.updateRun(runId, { wakeRequestedAt: before })
  return outcome
}

const bare = (owner: string): string => owner.replace(/\/recovery$/, '')

const isListed = ({ seq, status, kind }: StepCheckpoint): boolean =>
  seq < 0 && kind === 'local' && (status === 'running' || status === 'pending')

function unjudged(row: StepCheckpoint): StepCheckpoint {
  if (!row.error?.reset) return row
  const { reset, ...error } = row.error
  return { ...row, error }
}
