/*
 * The worker loop of a process: at most one, whether embedded or run by a command, so that a shutdown
 * knows what to stop, and the engine is drained exactly once.
 */
import { RuntimeException } from '@adonisjs/core/exceptions'
import { sleepOn, systemTimers } from '../foundation/clock.ts'
import { type Deferred, deferred } from '../foundation/deferred.ts'
import { messageOf } from '../foundation/failure.ts'
import {
  runWorkerLoop,
  type WorkerLoopEngine,
  type WorkerLoopOptions,
} from '../loop/worker_loop.ts'

export type HostedLoopOptions = Omit<WorkerLoopOptions, 'stopSignal'> & {
  /** Ends the loop as `stop` does. */
  stopSignal?: Promise<unknown>
}

export class LoopHost {
  #stop?: Deferred<void>
  #done: Promise<unknown> = Promise.resolve()
  #drained = false

  /** A loop drives this process. */
  get isRunning(): boolean {
    return this.#stop !== undefined
  }

  /** A loop ended, and drained the engine. */
  get hasDrained(): boolean {
    return this.#drained
  }

  /** Runs the loop until it is stopped; answers its ticks. Rejects when a loop runs already. */
  async run(engine: WorkerLoopEngine, options: HostedLoopOptions): Promise<number> {
    const stop = this.#begin()
    options.stopSignal?.then(
      () => stop.resolve(),
      () => stop.resolve()
    )
    return this.#track(this.#drainingLoop(engine, options, stop))
  }

  /** Runs the loop beside other work; one that fails is logged and started again. Rejects never. */
  async runEmbedded(engine: WorkerLoopEngine, options: HostedLoopOptions): Promise<void> {
    const stop = this.#begin()
    let stopped = false
    void stop.promise.then(() => (stopped = true))
    const attempts = async () => {
      while (!stopped) {
        try {
          await this.#drainingLoop(engine, { ...options, keepAlive: false }, stop)
          return
        } catch (error) {
          options.logger.error(`durable: the worker loop failed: ${messageOf(error)}`)
          await Promise.race([sleepOn(systemTimers, options.intervalMs), stop.promise])
        }
      }
    }
    await this.#track(attempts())
  }

  /** Stops the loop, if there is one, and waits until it has drained the engine. */
  async stop(): Promise<void> {
    this.#stop?.resolve()
    await this.#done
  }

  #begin(): Deferred<void> {
    if (this.#stop) {
      throw new RuntimeException('durable: the worker loop runs already in this process')
    }
    this.#stop = deferred<void>()
    return this.#stop
  }

  async #drainingLoop(
    engine: WorkerLoopEngine,
    options: HostedLoopOptions,
    stop: Deferred<void>
  ): Promise<number> {
    const ticks = await runWorkerLoop(engine, { ...options, stopSignal: stop.promise })
    this.#drained = true
    return ticks
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#done = work.catch(() => {})
    try {
      return await work
    } finally {
      this.#stop = undefined
    }
  }
}
