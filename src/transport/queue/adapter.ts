/*
 * What is used of an adapter of `@adonisjs/queue`, in its shape alone: no release of the package is
 * imported here. Times inside an adapter are those of the system clock.
 */
import { randomUUID } from 'node:crypto'
import { systemClock } from '../../foundation/clock.ts'

/** A job as an adapter takes it, and gives it back. */
export interface QueueJob {
  id: string
  name: string
  payload: unknown
  attempts: number
  createdAt?: number
  /** Lower is sooner, 1 to 10; 5 when absent. */
  priority?: number
  /** How often it was taken from a worker that fell silent. */
  stalledCount?: number
}

/** What an adapter of `@adonisjs/queue` offers, as far as a transport needs it. */
export interface QueueAdapter {
  setWorkerId(workerId: string): void
  pushOn(queue: string, job: QueueJob): Promise<unknown>
  pushManyOn?(queue: string, jobs: QueueJob[]): Promise<unknown>
  popFrom(queue: string): Promise<QueueJob | null>
  completeJob(jobId: string, queue: string): Promise<unknown>
  retryJob(jobId: string, queue: string, retryAt?: Date): Promise<unknown>
  sizeOf(queue: string): Promise<number>
  /** Extends claims of this worker; answers how many still stood. */
  renewJobs?(queue: string, jobIds: string[]): Promise<number>
  /** Takes jobs from silent workers; answers how many, or also which were given up for good. */
  recoverStalledJobs?(
    queue: string,
    stalledThreshold: number,
    maxStalledCount: number
  ): Promise<number | { failed?: QueueJob[] }>
  destroy(): Promise<unknown>
}

const URGENT = 1
const NORMAL = 5
const PATIENT = 10

/** The urgency of a job: lower is sooner for an adapter, higher is sooner for us. */
export function priorityOf(priority: number | undefined): { priority?: number } {
  if (priority === undefined || !Number.isFinite(priority)) return {}
  return { priority: Math.min(PATIENT, Math.max(URGENT, Math.round(NORMAL - priority))) }
}

/** A job that was not sent yet. */
export function newJob(name: string, payload: object, priority?: number): QueueJob {
  const createdAt = systemClock()
  const job = { id: nextJobId(createdAt), name, payload, attempts: 0, createdAt }
  return { ...job, ...priorityOf(priority) }
}

const COUNTS_TO = 0xfff
let lastMs = 0
let count = 0

/**
 * A UUID of version 7, higher than the one before it: adapters order jobs of the same millisecond by id,
 * if by anything.
 */
function nextJobId(nowMs: number): string {
  if (nowMs > lastMs) {
    lastMs = nowMs
    count = 0
  } else if (++count > COUNTS_TO) {
    lastMs += 1
    count = 0
  }
  const ms = lastMs.toString(16).padStart(12, '0')
  const counter = count.toString(16).padStart(3, '0')
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${counter}-${randomUUID().slice(19)}`
}
