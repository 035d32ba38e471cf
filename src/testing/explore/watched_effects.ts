/*
 * Effects: methods of objects that act on the world. While an exploration runs each call is noted with
 * the step body that made it; one that no step body made is repeated by every replay. A dead process
 * calls nothing any more.
 */
import { currentPlace } from './ledger.ts'
import { currentBody } from './unrecorded.ts'

export interface EffectCalls {
  /** Life of the process that executes now. */
  life(): number
  inStep(effect: string): void
  /** A workflow body called it, outside of its steps. */
  inBody(effect: string): void
}

const NEVER = new Promise<never>(() => {})

/** Watches the methods of these objects, inherited ones included. The answer gives them back. */
export function watchEffects(effects: Record<string, object>, calls: EffectCalls): () => void {
  const restores = Object.entries(effects).flatMap(([name, target]) =>
    methodsOf(target).map((method) => watch(target, method, `${name}.${method}`, calls))
  )
  return () => {
    for (const restore of restores.reverse()) restore()
  }
}

function watch(target: object, method: string, label: string, calls: EffectCalls): () => void {
  const own = Object.getOwnPropertyDescriptor(target, method)
  const original = Reflect.get(target, method) as (...args: unknown[]) => unknown
  Object.defineProperty(target, method, {
    configurable: true,
    enumerable: own?.enumerable ?? false,
    writable: true,
    value(this: unknown, ...args: unknown[]): unknown {
      const place = currentPlace()
      const caller = place ?? currentBody()
      if (caller && caller.life !== calls.life()) return NEVER
      if (place) calls.inStep(label)
      else if (caller) calls.inBody(label)
      return Reflect.apply(original, this, args)
    },
  })
  return () => {
    if (own) Object.defineProperty(target, method, own)
    else Reflect.deleteProperty(target, method)
  }
}

function methodsOf(target: object): string[] {
  const names = new Set<string>()
  for (
    let at: object | null = target;
    at && at !== Object.prototype && at !== Function.prototype;
    at = Object.getPrototypeOf(at) as object | null
  ) {
    for (const [name, { value, configurable }] of Object.entries(
      Object.getOwnPropertyDescriptors(at)
    )) {
      const replaceable = at !== target || configurable
      if (typeof value === 'function' && name !== 'constructor' && replaceable) names.add(name)
    }
  }
  return [...names]
}
