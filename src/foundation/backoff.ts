/*
 * Backoff: how long to wait after a failed attempt. One formula for local steps, dispatched steps and
 * saga undos.
 */

/** Uniform in [0, 1); the default behind every jitter. */
export const systemRandom = (): number => Math.random()

/** Constant or doubling delay between attempts. */
export type BackoffStrategy = 'fixed' | 'exp'

export interface BackoffPolicy {
  backoff?: BackoffStrategy
  backoffMs?: number
  backoffMaxMs?: number
  jitter?: boolean
}

/**
 * Milliseconds to wait after failed attempt `attempt` (1-based): `backoffMs`, doubled per attempt for
 * 'exp', capped by `backoffMaxMs`, then with `jitter` scaled by a random 50–100 %. 0 without `backoffMs`.
 */
export function backoffDelay(
  attempt: number,
  policy: BackoffPolicy,
  random: () => number = systemRandom
): number {
  const base = policy.backoffMs
  if (!base || base <= 0) return 0
  const raw = policy.backoff === 'exp' ? base * 2 ** (attempt - 1) : base
  const capped = policy.backoffMaxMs ? Math.min(raw, policy.backoffMaxMs) : raw
  return policy.jitter ? Math.round(capped * (0.5 + random() * 0.5)) : capped
}

/** `ms` scaled by a random factor between `1 - share` and `1 + share`, so that repeats do not align. */
export function spread(ms: number, share: number, random: () => number = systemRandom): number {
  return Math.round(ms * (1 + share * (2 * random() - 1)))
}

/** Attempts a policy allows: `retries` counts attempts; less than 1 reads as 1. */
export function maxAttempts(policy: { retries?: number } | undefined): number {
  return Math.max(1, Math.floor(policy?.retries ?? 1) || 1)
}

/** No further attempt: the failure forbids one, or the policy's attempts are used up. */
export function isFinalFailure(
  row: { attempts: number; error?: { retryable?: boolean } },
  attemptsAllowed: number
): boolean {
  return row.error?.retryable === false || row.attempts >= attemptsAllowed
}
