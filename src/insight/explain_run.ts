/*
 * The explanation of one run, from a store: a bounded number of reads, whatever the length of its history.
 */
import { childToken, nextLinkId, retriedIdOf } from '../foundation/ids.ts'
import type { FullStore } from '../store/full_store.ts'
import { SINGLETON_ADMITTED } from '../store/ports/singleton_rules.ts'
import type { SignalWaiter, StepCheckpoint } from '../types/checkpoint.ts'
import type { Explanation, RunExplanation } from '../types/explanation.ts'
import type { CheckpointGroupStats } from '../types/query.ts'
import { isTerminalStatus, type RunStatus, type WorkflowRun } from '../types/run.ts'
import { explain } from './explain.ts'
import type { ExplainFacts, ExplainWindows, GroupFacts, SlotFacts } from './explain_facts.ts'
import { explanationText } from './explain_text.ts'

export interface ExplainSource {
  store: FullStore
  windows: ExplainWindows
  nowMs: number
  /** Slots that a run waits for in this process. */
  slotsOf?: (runId: string) => SlotFacts[]
  /** Of these routing tokens, as far as anybody reports them. */
  groups?: (tokens: string[]) => Promise<ReadonlyMap<string, GroupFacts>>
}

const LAST_ROWS = 50
const OPEN_ROWS = 100
const DEEPEST = 5
/** Children of one run that are looked at. */
const MOST_CHILDREN = 3
const MOST_HOLDERS = 10
const ACTIVE: RunStatus[] = ['pending', 'running', 'suspended', 'blocked']
const KEY = 'singleton:'

/** Null for an unknown run. */
export async function explainRun(
  source: ExplainSource,
  runId: string
): Promise<RunExplanation | null> {
  const run = await source.store.getRun(runId)
  if (!run) return null
  const explanation = await explanationOf(source, run, DEEPEST)
  return { ...explanation, runId, text: explanationText(explanation, runId) }
}

async function explanationOf(
  source: ExplainSource,
  run: WorkflowRun,
  depth: number
): Promise<Explanation> {
  const { store, windows, nowMs } = source
  const last = await store.queryCheckpoints(run.id, { descending: true, limit: LAST_ROWS })
  const undos = last.some(({ seq }) => seq < 0) || run.cancelRequestedAt || run.status === 'failed'
  const facts: ExplainFacts = {
    run,
    open: [],
    last: last.filter(({ seq }) => seq >= 0).sort((a, b) => a.seq - b.seq),
    undos: undos ? await store.queryCheckpoints(run.id, { toSeq: -1, limit: OPEN_ROWS }) : [],
    waiters: [],
    fans: new Map(),
    groups: new Map(),
    children: new Map(),
    slots: source.slotsOf?.(run.id) ?? [],
    windows,
    nowMs,
  }
  if (isTerminalStatus(run.status)) return explain({ ...facts, ...(await followerOf(store, run)) })
  facts.open = await waitingRows(store, run.id, facts.last)
  facts.waiters = await store.listSignalWaitersByRunIds([run.id])
  facts.fans = await openFans(store, facts)
  const tokens = facts.open.flatMap(({ workerGroup }) => workerGroup ?? [])
  if (source.groups && tokens.length > 0) facts.groups = await source.groups([...new Set(tokens)])
  facts.children = await childrenOf(source, facts.waiters, depth)
  facts.singleton = await singletonOf(store, run)
  return explain(facts)
}

const MOST_OPEN_ROWS = 500

/** Positions without an end, ascending. */
export function openRows(
  store: FullStore,
  runId: string,
  limit = MOST_OPEN_ROWS
): Promise<StepCheckpoint[]> {
  return store.queryCheckpoints(runId, { fromSeq: 0, statuses: ['pending', 'running'], limit })
}

async function waitingRows(
  store: FullStore,
  runId: string,
  last: readonly StepCheckpoint[]
): Promise<StepCheckpoint[]> {
  const open = await openRows(store, runId, OPEN_ROWS)
  const retried = last.filter((row) => row.status === 'failed' && row.wakeAt !== undefined)
  return [...open, ...retried].sort((a, b) => a.seq - b.seq)
}

async function openFans(
  store: FullStore,
  { run, open, waiters }: ExplainFacts
): Promise<Map<string, CheckpointGroupStats>> {
  const groups = new Set([...open, ...waiters].flatMap(({ parallelGroup }) => parallelGroup ?? []))
  if (groups.size === 0) return new Map()
  const stats = await store.checkpointStats(run.id)
  return new Map(
    stats.groups.flatMap((each) =>
      each.group !== null && groups.has(each.group) ? [[each.group, each]] : []
    )
  )
}

/** What the first awaited children wait for in turn, as deep as is asked for. */
async function childrenOf(
  source: ExplainSource,
  waiters: readonly SignalWaiter[],
  depth: number
): Promise<ExplainFacts['children']> {
  const prefix = childToken('')
  const ids = waiters
    .filter(({ token }) => token.startsWith(prefix))
    .sort((a, b) => a.seq - b.seq)
    .slice(0, MOST_CHILDREN)
    .map(({ token }) => token.slice(prefix.length))
  if (ids.length === 0 || depth === 0) return new Map()
  const runs = await source.store.getRuns(ids)
  const found: [string, { run: WorkflowRun; explanation: Explanation } | null][] = []
  for (const id of ids) {
    const run = runs.find((each) => each.id === id)
    found.push([id, run ? { run, explanation: await explanationOf(source, run, depth - 1) } : null])
  }
  return new Map(found)
}

/** The place of a run that waits for its turn, among the live runs of its key. */
async function singletonOf(store: FullStore, run: WorkflowRun): Promise<ExplainFacts['singleton']> {
  const tag = run.tags?.find((each) => each.startsWith(KEY))
  if (tag === undefined || run.status !== 'suspended' || run.tags!.includes(SINGLETON_ADMITTED)) {
    return undefined
  }
  const query = { workflow: run.workflow, statuses: ACTIVE }
  const holders = await store.listRuns({ ...query, tag: SINGLETON_ADMITTED, page: 1, size: 100 })
  const own = holders.filter(({ tags }) => tags?.includes(tag)).slice(0, MOST_HOLDERS)
  const createdBefore = run.createdAt.getTime()
  const older = await store.countRuns({ ...query, tag, createdBefore })
  const before = Math.max(
    0,
    older - own.filter(({ createdAt }) => +createdAt < createdBefore).length
  )
  return { key: tag.slice(KEY.length), before, holders: own }
}

/** What deals with the end of a run, or goes on in its place. */
async function followerOf(
  store: FullStore,
  { id, status, output }: WorkflowRun
): Promise<Pick<ExplainFacts, 'follower'>> {
  const follower =
    status === 'failed'
      ? `onerror:${id}`
      : status === 'dead'
        ? `dlq:${id}`
        : status === 'completed' && output === undefined && retriedIdOf(id) === undefined
          ? nextLinkId(id)
          : undefined
  if (follower === undefined) return {}
  const [run] = await store.getRuns([follower])
  return run ? { follower } : {}
}
