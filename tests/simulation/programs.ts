/*
 * Programs: random workflows as data. A node has an id that names its position's row, so a result that
 * reaches the wrong node shows. A new primitive needs a leaf here, its call in `bodies.ts` and its answer
 * in `reference.ts`.
 */
import { below, pick, type Random, seeded } from './random.ts'

export type Leaf =
  | { t: 'step'; id: number; bad: boolean; tries: number; backoffMs: number; undo?: 'good' | 'bad' }
  | {
      t: 'local'
      id: number
      ms: number
      bad: boolean
      tries: number
      backoffMs: number
      undo?: 'good' | 'bad'
      timeoutMs?: number
    }
  | { t: 'transaction'; id: number; ms: number; bad: boolean }
  | { t: 'now'; id: number }
  | { t: 'sideEffect'; id: number }
  | { t: 'sleep'; id: number; ms: number }
  | { t: 'signal'; id: number; token: string; timeoutMs?: number }
  | { t: 'setEvent'; id: number }
  | { t: 'patched'; id: number }
  | { t: 'child'; id: number; program: Program }
  | { t: 'spawn'; id: number; program: Program }
  /** Waits for what an earlier `spawn` of the same child id started. */
  | { t: 'join'; id: number; spawned: number; program: Program }
  | FanLeaf
  /** Something that the body awaits and that is none of its ctx's. */
  | { t: 'pause'; id: number; ms: number }

export interface FanLeaf {
  t: 'fan'
  id: number
  size: number
  /** Over children; over a step without it. */
  program?: Program
  bad: boolean
  tries: number
  backoffMs: number
  mode: 'waitAll' | 'failFast' | 'settled'
  concurrency?: number
}

export type Node =
  | Leaf
  | { t: 'seq' | 'all' | 'race' | 'any' | 'allSettled' | 'cond'; of: Node[] }
  | { t: 'try'; body: Node; catch?: Node; finally?: Node }

export interface Program {
  root: Node
  /** How many runs follow the first one by continuing as new. */
  rounds: number
}

export const TOKENS = ['tok0', 'tok1', 'tok2']

/** A random program. Those of depth 1 and more are small: another run, or a child. */
export function randomProgram(seed: number, depth = 0): Program {
  const random = seeded(seed ^ 0x5bd1e995)
  let ids = 0
  const chance = (p: number) => random() < p
  const many = (n: number, one: () => Node) => Array.from({ length: n }, one)
  const undo = () => (chance(0.2) ? 'bad' : 'good')

  const leaf = (): Leaf => {
    const id = ids++
    const k = random()
    if (k < 0.3) {
      return {
        t: 'step',
        id,
        bad: chance(0.15),
        tries: 1 + below(random, 3),
        backoffMs: backoff(random),
        undo: chance(0.3) ? undo() : undefined,
      }
    }
    if (k < 0.52) {
      return {
        t: 'local',
        id,
        ms: localMs(random),
        bad: chance(0.1),
        tries: chance(0.25) ? 2 + below(random, 2) : 1,
        backoffMs: backoff(random),
        undo: chance(0.4) ? undo() : undefined,
        timeoutMs: chance(0.1) ? 10 + below(random, 60) : undefined,
      }
    }
    if (k < 0.59) return { t: 'transaction', id, ms: below(random, 50), bad: chance(0.1) }
    if (k < 0.63) return { t: 'now', id }
    if (k < 0.67) return { t: 'sideEffect', id }
    if (k < 0.77) return { t: 'sleep', id, ms: below(random, 600) }
    if (k < 0.93) {
      const timeoutMs = chance(0.5) ? 50 + below(random, 900) : undefined
      return { t: 'signal', id, token: pick(random, TOKENS), timeoutMs }
    }
    return chance(0.6) ? { t: 'setEvent', id } : { t: 'patched', id }
  }

  const smaller = () => randomProgram(below(random, 1e9), depth + 1)

  const together = (): Node => {
    const k = random()
    const id = ids++
    if (k < 0.35 && depth < 2) return { t: 'child', id, program: smaller() }
    if (k < 0.5 && depth < 2) {
      const program = smaller()
      const spawn: Leaf = { t: 'spawn', id, program }
      if (chance(0.3)) return spawn
      const join: Leaf = { t: 'join', id: ids++, spawned: id, program }
      return { t: 'seq', of: [spawn, ...(chance(0.5) ? [leaf()] : []), join] }
    }
    const program = depth < 2 && chance(0.35) ? smaller() : undefined
    return {
      t: 'fan',
      id,
      size: below(random, program ? 4 : 6),
      program,
      bad: chance(0.35),
      tries: 1 + below(random, 2),
      backoffMs: backoff(random),
      mode: pick(random, ['waitAll', 'failFast', 'settled'] as const),
      concurrency: chance(0.5) ? 1 + below(random, 4) : undefined,
    }
  }

  const node = (height: number): Node => {
    const k = random()
    if (height === 0 || k < 0.4) return chance(0.12) ? together() : leaf()
    const inner = () => node(height - 1)
    if (k < 0.55) return { t: 'seq', of: many(1 + below(random, 3), inner) }
    if (k < 0.7) return { t: 'all', of: many(2 + below(random, 2), inner) }
    if (k < 0.78) return { t: 'race', of: many(2 + below(random, 2), inner) }
    if (k < 0.82) return { t: 'any', of: many(2, inner) }
    if (k < 0.86) return { t: 'allSettled', of: many(2 + below(random, 2), inner) }
    if (k < 0.94) {
      return {
        t: 'try',
        body: inner(),
        catch: chance(0.6) ? leaf() : undefined,
        finally: chance(0.4) ? leaf() : undefined,
      }
    }
    return { t: 'cond', of: many(2, inner) }
  }

  const height = depth > 0 ? 1 : 3
  const length = depth > 0 ? 1 + below(random, 2) : 2 + below(random, 3)
  // Only where nothing else is open: next to other branches such a wait has no place in their order.
  const first: Node[] = chance(0.1) ? [{ t: 'pause', id: ids++, ms: below(random, 300) }] : []
  const root: Node = { t: 'seq', of: [...first, ...many(length, () => node(height))] }
  return { root, rounds: chance(0.15) ? 1 + below(random, 2) : 0 }
}

function backoff(random: Random): number {
  return random() < 0.5 ? 0 : 10 + below(random, 300)
}

/** Most local work is short; some outlasts a lease. */
function localMs(random: Random): number {
  const k = random()
  if (k < 0.1) return 0
  if (k < 0.8) return 1 + below(random, 80)
  return 1 + below(random, 500)
}

/** Every leaf, also those of branches that are never taken. */
export function leavesOf(node: Node): Leaf[] {
  switch (node.t) {
    case 'seq':
    case 'all':
    case 'race':
    case 'any':
    case 'allSettled':
    case 'cond':
      return node.of.flatMap(leavesOf)
    case 'try':
      return [node.body, node.catch, node.finally].flatMap((part) => (part ? leavesOf(part) : []))
    default:
      return [node]
  }
}

/** The program, and its children's, without waits that are none of a ctx's. */
export function withoutPauses(program: Program): Program {
  const strip = (node: Node): Node => {
    if (node.t === 'try') {
      const { body, catch: caught, finally: last } = node
      return {
        ...node,
        body: strip(body),
        catch: caught && strip(caught),
        finally: last && strip(last),
      }
    }
    if ('of' in node) return { ...node, of: node.of.filter(({ t }) => t !== 'pause').map(strip) }
    if ('program' in node && node.program) {
      return { ...node, program: withoutPauses(node.program) } as Node
    }
    return node
  }
  return { ...program, root: strip(program.root) }
}

/** A program and all those of its children, by the names of their workflows. */
export function workflowsOf(name: string, program: Program): [string, Program][] {
  const children = leavesOf(program.root).flatMap((leaf) =>
    'program' in leaf && leaf.program
      ? workflowsOf(`${name}.${childNameOf(leaf)}`, leaf.program)
      : []
  )
  return [[name, program], ...children]
}

/** The workflow of a leaf's children, below that of its own. */
export function childNameOf(leaf: Leaf): string {
  return `c${leaf.t === 'join' ? leaf.spawned : leaf.id}`
}

/** The name under which a leaf is recorded, where the program chooses it. */
export function nameOf(leaf: Leaf): string {
  return `${PREFIX[leaf.t]}${leaf.id}`
}

const PREFIX: Record<Leaf['t'], string> = {
  step: 's',
  local: 'l',
  transaction: 't',
  now: 'now',
  sideEffect: 'side',
  sleep: 'sleep',
  signal: 'sig',
  setEvent: 'e',
  patched: 'p',
  child: 'child',
  spawn: 'spawn',
  join: 'join',
  fan: 'f',
  pause: 'pause',
}

/** Programs that are one cut smaller. */
export function cuts(program: Program): Program[] {
  const smaller = cutNode(program.root).map((root) => ({ ...program, root }))
  return program.rounds > 0 ? [{ ...program, rounds: 0 }, ...smaller] : smaller
}

function cutNode(node: Node): Node[] {
  if (node.t === 'try') {
    const { catch: caught, finally: last } = node
    return [
      node.body,
      ...(caught ? [{ ...node, catch: undefined }] : []),
      ...(last ? [{ ...node, finally: undefined }] : []),
      ...cutNode(node.body).map((body) => ({ ...node, body })),
    ]
  }
  if ('of' in node) {
    const { of } = node
    const without = (i: number) => ({ ...node, of: of.filter((_, j) => j !== i) })
    const deeper = of.flatMap((part, i) =>
      cutNode(part).map((cut) => ({ ...node, of: of.map((other, j) => (j === i ? cut : other)) }))
    )
    const shorter = of.length > 1 && node.t !== 'cond' ? of.map((_, i) => without(i)) : []
    return [...of, ...shorter, ...deeper]
  }
  return simpler(node)
}

function simpler(leaf: Leaf): Leaf[] {
  const plain: Leaf[] = []
  if ('program' in leaf && leaf.program && leaf.t !== 'spawn' && leaf.t !== 'join') {
    for (const program of cuts(leaf.program)) plain.push({ ...leaf, program })
  }
  if (leaf.t === 'fan' && leaf.size > 1) plain.push({ ...leaf, size: leaf.size - 1 })
  if ('undo' in leaf && leaf.undo) plain.push({ ...leaf, undo: undefined })
  if ('tries' in leaf && leaf.tries > 1) plain.push({ ...leaf, tries: 1 })
  if ('backoffMs' in leaf && leaf.backoffMs > 0) plain.push({ ...leaf, backoffMs: 0 })
  return plain
}
