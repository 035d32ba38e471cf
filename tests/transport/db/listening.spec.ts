/*
 * On Postgres the db transport is told of tasks and results: a dispatched step needs no poll, and costs few
 * statements. Time stands still in these tests unless a test moves it, so no poll happens by itself.
 */
import { test } from '@japa/runner'
import { WorkflowEngine } from '../../../src/engine/workflow_engine.ts'
import { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import type { DbTransportConfig } from '../../../src/transport/db/options.ts'
import { countStatements, reachableDialects } from '../../helpers/databases.ts'
import { FakeTime } from '../../helpers/fake_time.ts'
import { until } from '../../helpers/until.ts'
import { dbBench } from './bench.ts'

const dialects = await reachableDialects()

if (dialects.includes('postgres')) {
  test.group('The db transport listens', (group) => {
    group.each.timeout(60_000)

    /** An engine and a worker, each with a pool of its own and no time that passes. */
    const setUp = async (
      cleanup: (fn: () => Promise<void>) => void,
      options: DbTransportConfig = {}
    ) => {
      const bench = await dbBench('postgres')
      cleanup(() => bench.cleanup())
      const time = new FakeTime()
      const open = () =>
        bench.open({ clock: time.clock, timers: time, ...options }, async (opened) => {
          let closed = false
          const closing = opened.close().finally(() => (closed = true))
          while (!closed) await time.advance(1_000)
          await closing
        })
      const [transport, worker] = [open(), open()]
      const store = new LucidStateStore(bench.database.db)
      await store.ensureSchema()
      const engine = new WorkflowEngine({ store, transport, clock: time.clock })
      cleanup(() => engine.drain())
      worker.handle('double', (input) => (input as number) * 2)
      engine.register('w', '1', async (ctx, input) => {
        let sum = 0
        for (let i = 0; i < (input as number); i++) sum += await ctx.step<number>('double', i)
        return sum
      })
      const completed = async (runId: string) => {
        const run = await store.getRun(runId)
        return run?.status === 'completed' ? run : undefined
      }
      return { bench, time, engine, worker, completed, store }
    }

    test('a dispatched step completes although no poll ever comes', async ({ assert, cleanup }) => {
      const { engine, completed, time } = await setUp(cleanup)
      void engine.start('w', 3, 'r')
      const run = await until(() => completed('r'), 'the end of the run')
      assert.equal(run.output, 6)
      assert.equal(time.now, new FakeTime().now)
    })

    test('without the line it completes by polls, and is told again once the line is back', async ({
      assert,
      cleanup,
    }) => {
      const { engine, completed, time, bench } = await setUp(cleanup)
      void engine.start('w', 1, 'first')
      await until(() => completed('first'), 'the first run')
      // Other suites listen too: only the lines of this schema's channel count.
      const { rows } = await bench.database.db.rawQuery(
        `SELECT 'LISTEN "durable_transport_' || md5(coalesce(current_schema(), '')) || '"' AS said`
      )
      const lines = async (): Promise<number[]> => {
        const own = `SELECT pid FROM pg_stat_activity WHERE query = '${rows[0].said}'`
        const found = await bench.database.db.rawQuery(own)
        return found.rows.map(({ pid }: { pid: number }) => pid)
      }
      const first = await lines()
      assert.isAtLeast(first.length, 2)
      for (const pid of first) {
        await bench.database.db.rawQuery('SELECT pg_terminate_backend(?)', [pid])
      }
      void engine.start('w', 2, 'second')
      await until(async () => {
        await time.advance(50)
        return completed('second')
      }, 'the second run')
      await until(async () => {
        await time.advance(50)
        const now = await lines()
        return now.filter((pid) => !first.includes(pid)).length === first.length
      }, 'the lines')
      const standing = time.now
      void engine.start('w', 2, 'third')
      const third = await until(() => completed('third'), 'the third run')
      assert.equal(third.output, 2)
      assert.equal(time.now, standing)
    })

    /** Statements of both processes for a dispatched step, when so many runs do it side by side. */
    const costOf = async (
      cleanup: (fn: () => Promise<void>) => void,
      options: DbTransportConfig,
      runs: number,
      steps: number
    ) => {
      const { engine, bench } = await setUp(cleanup, options)
      const over = new Set<string>()
      engine.subscribe((event) => {
        if (event.type === 'run.completed') over.add(event.runId)
      })
      const play = async (name: string, count: number) => {
        const ids = Array.from({ length: runs }, (_, i) => `${name} ${i}`)
        for (const id of ids) void engine.start('w', count, id)
        for (const id of ids) await until(() => over.has(id), `the end of ${id}`)
      }
      await play('warm', 1)
      const counters = bench.databases.map((db) => countStatements(db))
      const sent = () => counters.reduce((sum, { count }) => sum + count, 0)
      await play('none', 0)
      const spent = sent()
      for (const counter of counters) counter.reset()
      await play('stepping', steps)
      const texts = counters.flatMap((counter) => counter.texts.slice(-30)).join('\n')
      const each = (sent() - spent) / (runs * steps)
      for (const counter of counters) counter.stop()
      return { each, texts }
    }

    test('one step after the other: 12 statements each, worker and nudges included', async ({
      assert,
      cleanup,
    }) => {
      const { each, texts } = await costOf(cleanup, {}, 1, 20)
      assert.isAtMost(each, 12, texts)
      assert.isAbove(each, 5)
    })

    test('many runs at once, and results taken by fifties: at most 8 statements each', async ({
      assert,
      cleanup,
    }) => {
      const wide = { resultConcurrency: 50, concurrency: 50 }
      const { each, texts } = await costOf(cleanup, wide, 50, 4)
      assert.isAtMost(each, 8, texts)
      assert.isAbove(each, 3)
    })
  })
}
