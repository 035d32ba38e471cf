/*
 * A store that tells whether anybody calls it: how a test knows that nothing moves any more.
 */
import type { StateStore } from '../store/state_store.ts'

export interface CountingStore {
  store: StateStore
  /** Grows with every call and every answer; a call without an answer yet counts again each time. */
  activity(): number
}

export function countingStore(base: StateStore): CountingStore {
  let moves = 0
  let inFlight = 0
  const store = new Proxy(base, {
    get(target, name) {
      const member = Reflect.get(target, name) as unknown
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => {
        moves += 1
        const answer: unknown = Reflect.apply(member, target, args)
        if (!(answer instanceof Promise)) return answer
        inFlight += 1
        return answer.finally(() => {
          moves += 1
          inFlight -= 1
        })
      }
    },
  })
  return { store, activity: () => (inFlight > 0 ? ++moves : moves) }
}
