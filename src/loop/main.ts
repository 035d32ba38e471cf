/*
 * The door of the loop: one tick, and the loop of a worker.
 */
export { runTick } from './tick.ts'
export type { TickEngine, TickError, TickOptions, TickResult } from './tick.ts'
export { runWorkerLoop } from './worker_loop.ts'
export type { WorkerLogger, WorkerLoopEngine, WorkerLoopOptions } from './worker_loop.ts'
