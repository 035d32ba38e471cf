/*
 * Jobs: seeds spread over worker threads. A thread takes the next seed when it is done with one.
 */
import { availableParallelism } from 'node:os'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { StoreName } from './options.ts'
import type { RuleName } from './rules.ts'
import { runSeed, type SeedReport } from './seed_run.ts'

export interface JobOptions {
  off?: RuleName[]
  store?: StoreName
  jobs?: number
  /** Stops taking seeds after so many ms. */
  budgetMs: number
}

interface JobData {
  simulation: true
  off?: RuleName[]
  store?: StoreName
}

/** Runs the seeds; answers how many were run. */
export async function runJobs(
  seeds: number[],
  options: JobOptions,
  onReport: (report: SeedReport) => void
): Promise<number> {
  const { budgetMs, off, store } = options
  const count = Math.min(options.jobs ?? Math.min(4, availableParallelism()), seeds.length)
  const deadline = performance.now() + budgetMs
  let next = 0
  let done = 0
  const thread = () =>
    new Promise<void>((resolve, reject) => {
      const data: JobData = { simulation: true, off, store }
      const worker = new Worker(new URL(import.meta.url), { workerData: data })
      const feed = () => {
        if (next < seeds.length && performance.now() < deadline) worker.postMessage(seeds[next++])
        else void worker.terminate().then(() => resolve(), reject)
      }
      worker.on('message', (report: SeedReport) => {
        done += 1
        onReport(report)
        feed()
      })
      worker.on('error', reject)
      feed()
    })
  await Promise.all(Array.from({ length: count }, thread))
  return done
}

const data = workerData as JobData | undefined
if (!isMainThread && data?.simulation) {
  const { worldOptions } = await import('./options.ts')
  const { options } = await worldOptions(data)
  parentPort!.on('message', (seed: number) => {
    runSeed(seed, options).then(
      (report) => parentPort!.postMessage(report),
      (error: Error) =>
        parentPort!.postMessage({ seed, failures: [`threw: ${error.stack}`], statuses: [] })
    )
  })
}
