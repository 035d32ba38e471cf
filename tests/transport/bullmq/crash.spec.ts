import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { eventually, quietly } from '../../../src/testing/contracts/transport_session.ts'
import { BullBench, redisUrl } from './bench.ts'

const QUICK = { lockDuration: 500, stalledInterval: 250, maxStalledCount: 1 }

if (redisUrl) {
  test.group('bullmq | processes that die', (group) => {
    group.each.timeout(60_000)

    class Victim {
      readonly process: ChildProcess
      readonly said: unknown[] = []
      exited = false

      constructor(bench: BullBench, what: string, cleanup: (fn: () => void) => void) {
        this.process = fork(
          join(import.meta.dirname, 'worker_process.ts'),
          [redisUrl!, bench.prefix, what],
          {
            execArgv: ['--import=@poppinss/ts-exec'],
            stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
          }
        )
        this.process.on('message', (message) => this.said.push(message))
        this.process.once('exit', () => (this.exited = true))
        cleanup(() => void this.process.kill('SIGKILL'))
      }

      async takes(): Promise<void> {
        await eventually('the pickup', () => this.said.includes('taken'))
      }

      async dies(): Promise<void> {
        this.process.kill('SIGKILL')
        await eventually('the end of the process', () => this.exited)
      }
    }

    test('a task whose worker died is done by another one', async ({ assert, cleanup }) => {
      const bench = new BullBench(cleanup)
      const engine = await bench.session()
      const task = engine.task('held', 7)
      const victim = new Victim(bench, 'steps', cleanup)
      await engine.transport.dispatch(task)
      await victim.takes()
      const heir = await bench.session(QUICK)
      await victim.dies()
      heir.serve('held', (input) => input)
      assert.deepInclude(await engine.resultOf(task), { status: 'completed', output: 7 })
    })

    test('a task that its workers keep dying with fails, to be retried, once', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const engine = await bench.session()
      const task = engine.task('held', null)
      await engine.transport.dispatch(task)
      for (let deaths = 0; deaths < 2; deaths++) {
        const victim = new Victim(bench, 'steps', cleanup)
        await victim.takes()
        await victim.dies()
      }
      const last = await bench.session(QUICK)
      let runs = 0
      last.serve('held', () => runs++)
      const result = await engine.resultOf(task)
      assert.equal(result.status, 'failed')
      assert.match(result.error?.message ?? '', /^remote step worker failed: job stalled/)
      assert.equal(result.error?.retryable, true)
      assert.equal(runs, 0)
      // The retry is another job.
      const retry = { ...task, attempt: 2 }
      await engine.transport.dispatch(retry)
      await eventually('the retry', () => engine.heard(task).length > 1)
      assert.deepEqual(
        engine.heard(task).map(({ status }) => status),
        ['failed', 'completed']
      )
    })

    test('a result is not lost to engines that die with it, however many', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const worker = await bench.transport()
      worker.handle('quick', () => 'kept')
      const ids = { runId: 'r', seq: 0, stepId: 'r:0', name: 'quick', group: 'quick' }
      await worker.dispatch({ ...ids, input: null, attempt: 1 })
      for (let deaths = 0; deaths < 3; deaths++) {
        const victim = new Victim(bench, 'results', cleanup)
        await victim.takes()
        await victim.dies()
      }
      const engine = await bench.session(QUICK)
      await eventually('the result', () => engine.heard(ids).length > 0)
      assert.equal(engine.heard(ids)[0].output, 'kept')
    })

    test('a run message that consumers keep dying with is dropped and reported', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const errors: Error[] = []
      const heir = await bench.transport({
        ...QUICK,
        onError: (error) => errors.push(error as Error),
      })
      await heir.dispatchRun({ runId: 'poison', reason: 'start', at: 1 })
      for (let deaths = 0; deaths < 2; deaths++) {
        const victim = new Victim(bench, 'runs', cleanup)
        await victim.takes()
        await victim.dies()
      }
      const heard: string[] = []
      heir.onRun('default', async ({ runId }) => void heard.push(runId))
      await eventually('the report', () => errors.length > 0)
      assert.match(errors[0].message, /^bullmq: the message of run poison is dropped: job stalled/)
      await heir.dispatchRun({ runId: 'healthy', reason: 'start', at: 1 })
      await eventually('the next one', () => heard.length > 0)
      assert.deepEqual(heard, ['healthy'])
    })

    test('a live worker that runs longer than its lock keeps its task', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const engine = await bench.session()
      const workers = [await bench.transport(QUICK), await bench.transport(QUICK)]
      let runs = 0
      let finish: () => void = () => {}
      for (const worker of workers) {
        worker.handle('held', () => {
          runs++
          return new Promise<void>((resolve) => (finish = resolve))
        })
      }
      const task = engine.task('held', null)
      await engine.transport.dispatch(task)
      await eventually('the pickup', () => runs > 0)
      const lock = `bull:${bench.prefix}-tasks-held:1:lock`
      // Renewed three times: the lock would have lapsed, and the stalled check run, more than once.
      for (let renewals = 0, last = 0; renewals < 3;) {
        const left = await bench.redis.pttl(lock)
        if (left > last) renewals++
        last = left
      }
      finish()
      await engine.resultOf(task)
      await quietly()
      assert.equal(runs, 1)
      assert.lengthOf(engine.heard(task), 1)
    })

    test('close hands what still runs back at once and uncounted, and lets the process go', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const engine = await bench.session()
      const task = engine.task('held', 1)
      await engine.transport.dispatch(task)
      const victim = new Victim(bench, 'close', cleanup)
      await victim.takes()
      victim.process.send('close')
      await eventually('the end of the process', () => victim.exited)
      assert.equal(victim.process.exitCode, 0)
      const [job] = await bench.jobs(`${bench.prefix}-tasks-held`)
      assert.notProperty(job, 'stc')
      assert.notProperty(job, 'atm')
      assert.equal(await bench.redis.llen(`bull:${bench.prefix}-tasks-held:wait`), 1)
      const heir = await bench.session()
      heir.serve('held', (input) => input)
      assert.deepInclude(await engine.resultOf(task), { status: 'completed', output: 1 })
    })
  })
}
