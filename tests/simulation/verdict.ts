/*
 * The verdict on a world that is over: nothing stuck, every undo done once and in order, every operation on
 * an entity applied once, and every end explained by the stored rows.
 */
import { isDeepStrictEqual } from 'node:util'
import type { StepCheckpoint } from '../../src/types/checkpoint.ts'
import { isTerminalStatus, type SearchAttributes, type WorkflowRun } from '../../src/types/run.ts'
import { nextLinkId } from '../../src/foundation/ids.ts'
import type { Effects } from './effects.ts'
import { entityLogs, isEntityRun, verifyOperation, verifyTold } from './entities.ts'
import { leavesOf, nameOf, type Program, rowNameOf } from './programs.ts'
import { follow } from './reference.ts'
import type { Shadow } from './shadow.ts'

export interface FinishedWorld {
  shadow: Shadow
  effects: Effects
  programs: ReadonlyMap<string, Program>
  intents: ReadonlySet<string>
  settledBeforeUnwind(row: StepCheckpoint): boolean
  /** Search attributes with which a run began. */
  attributesAtFirst(runId: string): SearchAttributes | undefined
  /** Operations on entities that were accepted from outside, and their keys. */
  told: ReadonlyMap<string, string>
  fail(kind: string, text: string): void
}

export async function verify(world: FinishedWorld): Promise<void> {
  const logs = entityLogs(world)
  verifyTold(world, logs)
  for (const run of world.shadow.runs()) {
    if (isEntityRun(run)) continue
    const rows = world.shadow.rows(run.id)
    if (!isTerminalStatus(run.status)) {
      const open = rows.filter(({ status }) => status === 'pending' || status === 'running')
      const waits = open.map(({ seq, name, status }) => `${seq}:${name}:${status}`)
      world.fail('stuck', `${run.id} is ${run.status}, ${JSON.stringify(run.wakeAt)}: ${waits}`)
      continue
    }
    verifyEffects(world, run, rows)
    verifyChildren(world, run, rows)
    verifyUndos(world, run, rows)
    if (run.error?.code === 'non_determinism') world.fail('nondeterminism', run.error.message)
    else if (run.status === 'completed' || run.status === 'failed')
      await verifyEnd(world, run, rows, logs)
  }
}

function verifyEffects(
  { effects, fail }: FinishedWorld,
  run: WorkflowRun,
  rows: StepCheckpoint[]
): void {
  for (const row of rows) {
    if (!/^t\d+$/.test(row.name)) continue
    const commits = effects.commits(run.id, row.name)
    const expected = row.status === 'completed' ? 1 : 0
    if (commits !== expected) {
      fail('txcount', `${run.id}#${row.seq} is ${row.status} and committed ${commits} times`)
    }
  }
}

/** Every recorded child exists, under this run or a later link; a cancelled run told its own. */
function verifyChildren(
  { shadow, fail }: FinishedWorld,
  run: WorkflowRun,
  rows: StepCheckpoint[]
): void {
  for (const { name } of rows) {
    const [, childId] = /^(?:signal:child|spawn):(.*)$/.exec(name) ?? []
    if (childId !== undefined && !shadow.run(childId)) fail('gap', `${run.id} has no ${childId}`)
  }
  if (run.status === 'cancelled' && run.cancelRequestedAt !== undefined) {
    fail('untold', `${run.id} was cancelled and its children were not told`)
  }
}

/** The undo list: reverse order, each once, and complete for a run that had to undo. */
function verifyUndos(world: FinishedWorld, run: WorkflowRun, rows: StepCheckpoint[]): void {
  const { effects, fail, intents, settledBeforeUnwind } = world
  // A dispatched step may complete while the unwind is under way: then it is not on the list.
  const mustUndo = (row: StepCheckpoint) => row.kind === 'local' || settledBeforeUnwind(row)
  const list = rows.filter(({ seq, attempts }) => seq < 0 && attempts > 0)
  list.sort((a, b) => b.seq - a.seq)
  const targets = list.map(({ input }) => (input as { undoes: number }).undoes)
  if (targets.some((seq, i) => i > 0 && targets[i - 1] <= seq)) {
    fail('undoorder', `${run.id}: ${targets}`)
  }
  const undoing = run.status === 'failed' || (run.status === 'cancelled' && intents.has(run.id))
  if (!undoing || run.error?.code === 'non_determinism') return
  const ends = list.map(({ finishedAt }) => finishedAt.getTime())
  if (ends.some((at, i) => i > 0 && ends[i - 1] > at + SKEW_MS)) {
    fail('undoorder', `${run.id} undid out of turn`)
  }
  for (const { seq, status } of list) {
    if (status === 'pending' || status === 'running')
      fail('notundone', `${run.id}#${seq}: ${status}`)
  }
  for (const leaf of leavesOf(programOf(world, run).root)) {
    if (!('undo' in leaf) || !leaf.undo) continue
    const row = rows.find(({ name, seq }) => seq >= 0 && name === rowNameOf(leaf))
    const undo = list.find(({ name }) => name === `compensate:${rowNameOf(leaf)}`)
    if (row?.status === 'completed' && !undo && mustUndo(row)) {
      fail('notundone', `${run.id}#${row.seq} ${row.name} (${run.status})`)
    }
    const done = effects.undoings(run.id, nameOf(leaf))
    if (undo?.status === 'completed' && done === 0) fail('notundone', `${run.id} ${undo.name}`)
  }
}

const SKEW_MS = 250

function programOf({ programs }: FinishedWorld, run: WorkflowRun): Program {
  return programs.get(run.workflow)!
}

async function verifyEnd(
  world: FinishedWorld,
  run: WorkflowRun,
  rows: StepCheckpoint[],
  logs: ReadonlyMap<string, string[]>
): Promise<void> {
  const { fail, shadow } = world
  const program = programOf(world, run)
  const { round } = run.input as { round: number }
  const { end, stuck, asked } = await follow(
    program,
    round,
    run.id,
    rows.filter(({ seq }) => seq >= 0)
  )
  if (stuck || !end) {
    fail('reference', `${run.id} (${run.status}): ${stuck}`)
    return
  }
  const attributes = { ...world.attributesAtFirst(run.id) }
  for (const [seq, leaf] of asked) {
    const row = shadow.row(run.id, seq)
    if (leaf.t === 'callEntity' || leaf.t === 'signalEntity') {
      verifyOperation(world, logs, { runId: run.id, leaf, row })
    }
    if (leaf.t === 'attributes' && row?.status === 'completed')
      Object.assign(attributes, leaf.values)
  }
  if (!isDeepStrictEqual(attributes, { ...run.searchAttributes })) {
    const [a, b] = [run.searchAttributes, attributes].map((value) => JSON.stringify(value))
    fail('attributes', `${run.id}: stored ${a} · followed ${b}`)
  }
  if ('next' in end) {
    if (run.status !== 'completed' || run.output !== undefined)
      fail('output', `${run.id} must continue`)
    else if (!shadow.run(nextLinkId(run.id))) fail('chain', `${run.id} has no successor`)
    else if (!isDeepStrictEqual(attributes, { ...world.attributesAtFirst(nextLinkId(run.id)) })) {
      fail('attributes', `${nextLinkId(run.id)} began without those of ${run.id}`)
    }
    return
  }
  const stored = run.status === 'failed' ? { error: run.error!.message } : { output: run.output }
  if (JSON.stringify(stored) === JSON.stringify(end)) return
  const [a, b] = [stored, end].map((value) => JSON.stringify(value).slice(0, 400))
  fail('output', `${run.id}: stored ${a} · followed ${b}`)
}
