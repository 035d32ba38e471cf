/*
 * A promise with its handles. A rejection that nobody awaits is not an unhandled one: the body of a
 * workflow may drop a promise at any time.
 */
export interface Deferred<T = unknown> {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(reason: unknown): void
}

export function deferred<T = unknown>(): Deferred<T> {
  let resolve!: (value: T) => void
  let reject!: (reason: unknown) => void
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  promise.catch(() => {})
  return { promise, resolve, reject }
}
