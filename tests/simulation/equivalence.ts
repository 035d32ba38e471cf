/*
 * Equivalence: a program runs without faults in every mode that the engine has, at the same virtual
 * times. Histories, outputs and what the body saw must be identical: whether a turn replays from the
 * store, from kept history, or goes on with the body itself makes no difference that can be told.
 */
import type { WorkflowEngineDeps } from '../../src/engine/deps.ts'
import { OPTIONAL_MEMBERS } from '../../src/store/ports/members.ts'
import type { TurnCommit } from '../../src/store/ports/turn_commits.ts'
import type { ClaimedRun } from '../../src/store/ports/run_claims.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import { isTerminalStatus, type WorkflowRun } from '../../src/types/run.ts'
import { type Backend, memoryBackend } from './backend.ts'
import { Broker } from './broker.ts'
import { type EventPayload, Effects } from './effects.ts'
import { isEntityRun } from './entities.ts'
import { faultyStore, type StoreWorld } from './faulty_store.ts'
import { leavesOf, nameOf, PAD, type Program, TOKENS, workflowsOf } from './programs.ts'
import { fraction } from './random.ts'
import { SimProcess } from './sim_process.ts'
import { ProcessTime, VirtualTime } from './virtual_time.ts'

export interface Mode {
  name: string
  settings: Partial<WorkflowEngineDeps>
  backend(): Backend
  /** Hides what was kept: every turn replays from the store. */
  cold?: boolean
}

export const MODES: Mode[] = [
  { name: 'cold', settings: {}, backend: () => memoryBackend(), cold: true },
  { name: 'warm', settings: {}, backend: () => memoryBackend() },
  { name: 'continued', settings: { continuations: {} }, backend: () => memoryBackend() },
  { name: 'on a plain store', settings: {}, backend: () => memoryBackend(undefined, plainStore) },
]

/** What a mode left behind. */
export interface Trail {
  runs: unknown[]
  /** How often a body began. */
  bodies: number
  problems: string[]
}

const POLL_MS = 23
const SIGNAL_MS = 173
const EVENT_MS = 131
const WORD_MS = 97
/** What entities still do when every other run has ended is done by then. */
const REST_MS = 3000
const LIMIT_MS = 60_000

export async function playCalmly(program: Program, mode: Mode): Promise<Trail> {
  const time = new VirtualTime()
  const backend = mode.backend()
  const { shadow } = backend
  const problems: string[] = []
  let bodies = 0
  const fail = (kind: string, text: string) => void problems.push(`${kind}: ${text}`)
  const note = () => {}
  const roll = fraction
  const known = new Set<string>()
  /** Once for each of these, whatever is executed again. */
  const onceAfter = (key: string, act: () => Promise<unknown>) => {
    if (known.has(key)) return
    known.add(key)
    const delay = 11 * Math.floor(60 * fraction(key))
    time.after(delay, () => void act().catch((e) => fail(key, String(e))))
  }
  const effects = new Effects({
    shadow,
    fail,
    note,
    asked: () => void time.activity++,
    roll,
    handedOver: (runId, leaf) => {
      const name = nameOf(leaf)
      const report = `K${runId} ${leaf.id}.0`
      onceAfter(report, () =>
        fraction(`fails ${report}`) < 0.2
          ? one.engine.failTask(runId, name, report)
          : one.engine.completeTask(runId, name, report)
      )
    },
    minted: (token) => onceAfter(token, () => one.engine.signal(token, `${token}/p0`)),
  })
  const world: StoreWorld = {
    time,
    random: () => 0.5,
    backend,
    shadow,
    effects,
    note,
    before: ({ name, args }) => {
      if (name === 'createRun') shadow.expect((args[0] as WorkflowRun).id)
      if (name !== 'commitTurn') return
      const { runs = [], children = [] } = args[0] as TurnCommit
      for (const run of [...runs, ...children]) shadow.expect(run.id)
    },
    after: () => {},
    wait: (work) => void waiting.push(work),
  }
  const waiting: Promise<unknown>[] = []
  const broker = new Broker({ time, random: () => 0.5, shadow, effects, fail, note, roll })
  const processTime = new ProcessTime(time)
  const one = new SimProcess(
    {
      id: 'e',
      time: processTime,
      effects,
      programs: new Map(workflowsOf('w', program)),
      // One at a time: which of two runs that are due at one instant is faster is no difference of modes.
      settings: { leaseMs: 300, reconcileMs: 4000, timerBatchSize: 1, ...mode.settings },
      report: (error, what) => fail('report', `${what}: ${String(error)}`),
      operationMs: (who) => 3 + 90 * fraction(who),
      began: () => void bodies++,
    },
    (self) => {
      const client = { id: 'e', time: processTime, claimed: (run: ClaimedRun) => self.claimed(run) }
      const store = faultyStore(world, client)
      const transport = broker.connect('e', processTime)
      return { store: mode.cold ? forgetful(store) : store, transport }
    }
  )

  shadow.expect('r')
  time.after(0, () => void one.engine.start('w', { round: 0 }, 'r').catch((e) => fail('start', e)))
  repeat(time, POLL_MS, () => one.poll())
  let signals = 0
  repeat(time, SIGNAL_MS, () => {
    const token = TOKENS[signals % TOKENS.length]
    void one.engine.signal(token, `${token}/p${signals++}`).catch((e) => fail('signal', String(e)))
  })
  let events = 0
  const awaited = workflowsOf('w', program).flatMap(([, { root }]) =>
    leavesOf(root).flatMap((leaf) => (leaf.t === 'event' ? [leaf.event] : []))
  )
  const names = [...new Set(awaited)]
  repeat(time, EVENT_MS, () => {
    if (names.length === 0) return
    const nr = events++
    const event = names[nr % names.length]
    const payload: EventPayload = { event, nr, k: Math.floor(nr / names.length) % 2, pad: PAD }
    void one.engine.publishEvent(event, payload).catch((e) => fail('event', String(e)))
  })
  repeat(time, WORD_MS, () => {
    for (const { runId, token } of backend.waitersNow!()) {
      const [, name] = /^update:.*:([^:]*)$/.exec(token) ?? []
      const word = token.startsWith('bp:')
        ? one.engine.continue(runId)
        : name && one.engine.update(runId, name, `${token}/p0`)
      if (word) word.catch((e) => fail('word', String(e)))
    }
  })
  const isOver = () => {
    const runs = shadow.runs()
    return runs.length > 0 && runs.every((run) => isTerminalStatus(run.status) || isEntityRun(run))
  }
  const isDone = () => isOver() && (!shadow.runs().some(isEntityRun) || time.now > (restUntil ?? 0))
  let restUntil: number | undefined
  while (!isDone() && time.now < LIMIT_MS && time.step()) {
    if (isOver()) restUntil ??= time.now + REST_MS
    await time.settled()
    while (waiting.length > 0) await Promise.all(waiting.splice(0))
  }
  processTime.die()
  await backend.close()
  const runs = shadow.runs().sort((a, b) => (a.id < b.id ? -1 : 1))
  return { runs: runs.map((run) => told(run, shadow.rows(run.id))), bodies, problems }
}

/** Compares the modes; answers what differs. */
export async function compareModes(program: Program): Promise<string[]> {
  const trails: [string, Trail][] = []
  for (const mode of MODES) trails.push([mode.name, await playCalmly(program, mode)])
  const differences: string[] = []
  const [[, first], ...others] = trails
  for (const [name, trail] of trails) {
    for (const problem of trail.problems) differences.push(`${name}: ${problem}`)
  }
  for (const [name, trail] of others) {
    const difference = firstDifference(first.runs, trail.runs)
    if (difference) differences.push(`cold and ${name} differ: ${difference}`)
  }
  return differences
}

function repeat(time: VirtualTime, ms: number, work: () => void): void {
  time.after(ms, () => {
    work()
    repeat(time, ms, work)
  })
}

/** A store whose claims never match what was kept. */
function forgetful(store: StateStore): StateStore {
  const forget = (claimed: ClaimedRun) =>
    claimed.previousTurns === undefined ? claimed : { ...claimed, previousTurns: -1 }
  return {
    ...store,
    claimRun: async (claim) => {
      const claimed = await store.claimRun!(claim)
      return claimed && forget(claimed)
    },
    claimDueRuns: (claim) => store.claimDueRuns!(claim).then((claims) => claims.map(forget)),
  }
}

/** A store of the required members, and transactions. */
function plainStore(store: StateStore): StateStore {
  const optional: readonly string[] = OPTIONAL_MEMBERS.filter((name) => name !== 'transaction')
  return new Proxy(store, {
    get: (target, name) => {
      if (optional.includes(String(name))) return undefined
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

const told = (run: WorkflowRun, rows: StepCheckpoint[]) => ({
  id: run.id,
  status: run.status,
  output: run.output,
  error: run.error?.message,
  attributes: JSON.stringify(run.searchAttributes),
  rows: rows.map(({ seq, name, kind, status, attempts, order, output, error, wakeAt }) =>
    JSON.stringify({
      seq,
      name,
      kind,
      status,
      attempts,
      order,
      output,
      error: error?.message,
      wakeAt,
    })
  ),
})

function firstDifference(a: unknown, b: unknown, path = ''): string | undefined {
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const found = firstDifference(
        (a as Record<string, unknown>)[key],
        (b as Record<string, unknown>)[key],
        `${path}/${key}`
      )
      if (found) return found
    }
    return undefined
  }
  return a === b ? undefined : `${path}: ${String(a)} · ${String(b)}`
}
