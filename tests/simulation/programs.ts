/*
 * Programs: random workflows as data. A node has an id that names its position's row, so a result that
 * reaches the wrong node shows. A new primitive needs a leaf here, its call in `bodies.ts` and its answer
 * in `reference.ts`.
 */
import type { EventMatch } from '../../src/foundation/event_match.ts'
import type { SearchAttributes } from '../../src/types/run.ts'
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
  | LaterLeaf
  /** Something that the body awaits and that is none of its ctx's. */
  | { t: 'pause'; id: number; ms: number }

/** Answered from outside, or told to others. */
export type LaterLeaf =
  | { t: 'event'; id: number; event: string; match?: EventMatch; timeoutMs?: number }
  | { t: 'update'; id: number; update: string; timeoutMs?: number }
  | {
      t: 'task'
      id: number
      ms: number
      bad: boolean
      tries: number
      backoffMs: number
      undo?: 'good' | 'bad'
    }
  /** Minted at once, waited for after `between`. */
  | { t: 'webhook'; id: number; between?: Leaf; timeoutMs?: number }
  | { t: 'breakpoint'; id: number }
  | { t: 'attributes'; id: number; values: SearchAttributes }
  | { t: 'callEntity' | 'signalEntity'; id: number; key: string; op: 'add' | 'bad' }

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
export const EVENTS = ['ev0', 'ev1']
const UPDATES = ['up0', 'up1']
const KEYS = ['k0', 'k1']

/** What an argument of an update must not be: refused by every validator here. */
export const REFUSED = 'refused'

/** Makes a match that does not fit a token. */
export const PAD = 'x'.repeat(220)

/** Half of all seeds: the others keep the stories that they had before these leaves came. */
export const hasLaterLeaves = (seed: number): boolean => seed % 4 === 0 || seed % 4 === 3

/** A random program. Those of depth 1 and more are small: another run, or a child. */
export function randomProgram(seed: number, depth = 0, later = hasLaterLeaves(seed)): Program {
  const random = seeded(seed ^ 0x5bd1e995)
  let ids = 0
  const chance = (p: number) => random() < p
  const many = (n: number, one: () => Node) => Array.from({ length: n }, one)
  const undo = () => (chance(0.2) ? 'bad' : 'good')

  const leaf = (): Leaf => {
    const id = ids++
    if (later && chance(0.5)) return laterLeaf(id)
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

  const laterLeaf = (id: number): LaterLeaf => {
    const bound = () => (chance(0.4) ? 50 + below(random, 900) : undefined)
    const k = random()
    if (k < 0.24) {
      const match = chance(0.5) ? { k: below(random, 2), ...(chance(0.3) ? { pad: PAD } : {}) } : {}
      return { t: 'event', id, event: pick(random, EVENTS), match, timeoutMs: bound() }
    }
    if (k < 0.36) return { t: 'update', id, update: pick(random, UPDATES), timeoutMs: bound() }
    if (k < 0.5) {
      return {
        t: 'task',
        id,
        ms: localMs(random),
        bad: chance(0.15),
        tries: 1 + below(random, 3),
        backoffMs: backoff(random),
        undo: chance(0.3) ? undo() : undefined,
      }
    }
    if (k < 0.62) {
      return { t: 'webhook', id, between: chance(0.5) ? leaf() : undefined, timeoutMs: bound() }
    }
    if (k < 0.68) return { t: 'breakpoint', id }
    if (k < 0.8) {
      // The schema of every workflow here refuses a `c` that is true.
      const c: SearchAttributes = chance(0.2) ? { c: chance(0.5) } : {}
      return { t: 'attributes', id, values: { [pick(random, ['a', 'b'])]: id, ...c } }
    }
    const op = chance(0.15) ? 'bad' : 'add'
    return { t: chance(0.6) ? 'callEntity' : 'signalEntity', id, key: pick(random, KEYS), op }
  }

  const smaller = () => randomProgram(below(random, 1e9), depth + 1, later)

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
  if (depth === 0 && seed % FOLDING_EVERY === 0) root.of.splice(1, 0, foldable(ids++, random))
  return { root, rounds: chance(0.15) ? 1 + below(random, 2) : 0 }
}

/** How many seeds there are to one with a fan whose waves are large enough to be folded. */
const FOLDING_EVERY = 20

function foldable(id: number, random: Random): Leaf {
  const local: Leaf = {
    t: 'local',
    id: 0,
    ms: below(random, 40),
    bad: random() < 0.1,
    tries: 1,
    backoffMs: 0,
  }
  return {
    t: 'fan',
    id,
    size: 16 + below(random, 24),
    program: { root: { t: 'seq', of: [local] }, rounds: 0 },
    bad: false,
    tries: 1,
    backoffMs: 0,
    mode: pick(random, ['waitAll', 'failFast', 'settled'] as const),
    concurrency: random() < 0.5 ? 32 : undefined,
  }
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
    case 'webhook':
      return node.between ? [node, ...leavesOf(node.between)] : [node]
    default:
      return [node]
  }
}

export const OWN_KEY = 'own'

/**
 * The program, and its children's, without what the modes of an engine may take different times over: waits
 * that are none of a ctx's, operations that reach one entity and events that reach two waits at one instant.
 */
export function calm(program: Program): Program {
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
    if ('of' in node)
      return {
        ...node,
        of: node.of.filter(({ t }) => t !== 'pause').map(strip),
      }
    if (node.t === 'callEntity') return { ...node, key: OWN_KEY }
    if (node.t === 'event') return { ...node, event: `${node.event}.${node.id}` }
    if (node.t === 'signalEntity') return { t: 'setEvent', id: node.id }
    if (node.t === 'webhook' && node.between) {
      return { ...node, between: strip(node.between) as Leaf }
    }
    if ('program' in node && node.program) {
      return { ...node, program: calm(node.program) } as Node
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

/** The name of a leaf's first row, where the program chooses it. */
export function rowNameOf(leaf: Leaf): string {
  return leaf.t === 'task' ? `task:dispatch:${nameOf(leaf)}` : nameOf(leaf)
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
  event: 'event',
  update: 'update',
  task: 'k',
  webhook: 'hook',
  breakpoint: 'b',
  attributes: 'attributes',
  callEntity: 'call',
  signalEntity: 'tell',
  fan: 'f',
  pause: 'pause',
}
