/*
 * Role: singleton admission. Optional; the fallback is not atomic and warns once.
 */
import type { RunStatus } from '../../types/run.ts'

export interface SingletonClaim {
  runId: string
  workflow: string
  /** `singleton:<key>` */
  tag: string
  limit: number
  /** `wakeAt` of a run that has to wait (epoch ms). */
  retryAt: number
  nowMs: number
}

export type SingletonVerdict = { admitted: true } | { admitted: false; status: RunStatus | null }

export interface SingletonClaims {
  /** One transaction that locks before it reads. */
  tryAdmitSingleton(claim: SingletonClaim): Promise<SingletonVerdict>
}
