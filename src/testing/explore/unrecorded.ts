/*
 * Chance and time that a body takes from somewhere else than its ctx. While an exploration runs, what a
 * body reads of `Math.random`, `Date.now` and `new Date()` differs from one execution of it to the next,
 * as it would in production, so that a decision that hangs on it comes out differently in a replay. Step
 * bodies, and everything outside of a body, read what they always read.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { currentStepBody } from '../../authoring/ambient.ts'

/** One execution of a body. */
export interface BodyScope {
  /** Executions of bodies before this one. */
  index: number
  /** The life of the process that executes it. */
  life: number
  /** Calls of `Math.random` so far. */
  rolls: number
  /** What the body read besides its ctx: names of functions. */
  readonly read: Set<string>
}

const scopes = new AsyncLocalStorage<BodyScope>()

/** A prime number of ms, a little more than a day: no two executions agree on hour, minute or parity. */
const SHIFT_MS = 90_061_001

/** Runs a body so that chance and time are its own. */
export function runAsBody<T>(scope: BodyScope, body: () => T): T {
  return scopes.run(scope, body)
}

/** The execution of a body on this async path; undefined in a step body and outside. */
export function currentBody(): BodyScope | undefined {
  return currentStepBody() ? undefined : scopes.getStore()
}

/** Leaves the body that runs on this async path. */
export function runOutsideBody<T>(fn: () => T): T {
  return scopes.exit(fn)
}

let users = 0
let restore = () => {}

/** Begins to tell executions apart; the answer ends it. Explorations may overlap. */
export function unsettle(): () => void {
  users += 1
  if (users === 1) restore = replaceGlobals()
  let over = false
  return () => {
    if (over) return
    over = true
    users -= 1
    if (users === 0) restore()
  }
}

function replaceGlobals(): () => void {
  const RealDate = globalThis.Date
  const random = Object.getOwnPropertyDescriptor(Math, 'random')!
  const now = Object.getOwnPropertyDescriptor(RealDate, 'now')!
  const realNow = now.value as () => number
  const timeOf = (scope: BodyScope, what: string): number => {
    scope.read.add(what)
    return realNow() + scope.index * SHIFT_MS
  }
  Object.defineProperty(Math, 'random', {
    ...random,
    value: () => {
      const scope = currentBody()
      return scope ? roll(scope) : (random.value as () => number)()
    },
  })
  Object.defineProperty(RealDate, 'now', {
    ...now,
    value: () => {
      const scope = currentBody()
      return scope ? timeOf(scope, 'Date.now()') : realNow()
    },
  })
  // A proxy: whatever is an instance of the one is an instance of the other.
  globalThis.Date = new Proxy(RealDate, {
    construct(target, args: unknown[], newTarget: new () => object) {
      const scope = args.length === 0 ? currentBody() : undefined
      return Reflect.construct(target, scope ? [timeOf(scope, 'new Date()')] : args, newTarget)
    },
  })
  return () => {
    globalThis.Date = RealDate
    Object.defineProperty(RealDate, 'now', now)
    Object.defineProperty(Math, 'random', random)
  }
}

/**
 * In [0, 1). Of two executions that follow each other one gets the mirror image of the other, and some
 * get the ends: a threshold anywhere in between is passed by some and missed by others.
 */
function roll(scope: BodyScope): number {
  scope.read.add('Math.random()')
  const base = fraction(scope.rolls++ * 0.618_033_988_75 + 0.3)
  switch (scope.index % 6) {
    case 2:
      return 0
    case 3:
      return 1 - Number.EPSILON
    case 0:
    case 4:
      return base
    default:
      return 1 - base
  }
}

const fraction = (x: number): number => x - Math.floor(x)
