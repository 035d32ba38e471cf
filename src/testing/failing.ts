/*
 * Step bodies that fail before they succeed.
 */

/** A step body that fails at its first call and answers `value` afterwards. See `failTimes`. */
export function failOnce<T>(value: T, error?: unknown): () => Promise<T> {
  return failTimes(1, value, error)
}

/**
 * A step body that fails at its first `times` calls, then answers `value`. `error` is what it rejects
 * with; default an `Error` that counts. Every call counts, whichever step or run makes it.
 */
export function failTimes<T>(times: number, value: T, error?: unknown): () => Promise<T> {
  let calls = 0
  return async () => {
    calls += 1
    if (calls > times) return value
    throw error ?? new Error(`planned failure ${calls} of ${times}`)
  }
}
