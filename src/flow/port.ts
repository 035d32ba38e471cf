/*
 * Port: flow-control queues. Who may dispatch a step now, by concurrency and rate, across everything that
 * shares the backend. A slot is held from its admission until it is released.
 */
export interface QueueConfig {
  name: string
  /** Slots held at once; unbounded when absent. */
  concurrency?: number
  /** At most `limit` admissions in a window of `periodMs`; indifferent to order. */
  rateLimit?: { limit: number; periodMs: number }
  /** When a caller that was denied should ask again, in ms; default 1000. */
  retryMs?: number
  /** `'key'`: the key that was served longest ago goes first, one never served before all. */
  fairness?: 'key'
  /** Among equals: the earliest arrival (default) or the latest. */
  order?: 'fifo' | 'lifo'
}

export interface AdmissionRequest {
  /** The same for every retry of one caller; a holder that asks again is admitted again. */
  waiterId: string
  /** Higher first; default 0. */
  priority?: number
  /** What fairness counts; default the waiter id. */
  key?: string
}

/** `retryAt` is epoch ms. */
export type Admission = { admitted: true } | { admitted: false; retryAt: number }

/**
 * An answer that takes longer than 5000 ms is not waited for. A request is denied then, and made again after a
 * second; a slot that is granted after all is released. A release is sent again by a later pass.
 */
export interface AdmissionBackend {
  /** Adds or replaces a queue; slots that are held stay held. */
  registerQueue(config: QueueConfig): void
  /** The queue is registered; any other name is not gated. */
  handles(queue: string): boolean
  tryAdmit(queue: string, request: AdmissionRequest): Promise<Admission>
  /** Gives back the slot of a waiter; an unknown one changes nothing. */
  release(queue: string, waiterId: string): Promise<void>
  /**
   * Told the queue in which a slot came free, and who is in line for it where the backend knows: waiter
   * ids, first come first. Without them every waiter is asked again. The answer stops it.
   */
  onFreed(listener: (queue: string, next?: readonly string[]) => void): () => void
  close?(): Promise<void>
}
