/*
 * Quiescence: letting a body run until it cannot run on by itself.
 */

/** Resolves after every microtask that can run has run. */
export function microtasksDrained(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}

/** Resolves one macrotask later: for libraries that hop through it between two awaits. */
export function macrotaskPassed(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
