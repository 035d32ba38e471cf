/*
 * What happens to claims: workers that die, live too long, are stopped, or come too late. Each process has
 * time of its own: one whose time stands still is dead to the others.
 */
import { test } from '@japa/runner'
import { deferred } from '../../../src/foundation/deferred.ts'
import { TRANSPORT_TABLES as T } from '../../../src/transport/db/tables.ts'
import { reachableDialects } from '../../helpers/databases.ts'
import { FakeTime } from '../../helpers/fake_time.ts'
import { until } from '../../helpers/until.ts'
import { dbBench } from './bench.ts'
import { LEASE_MS, pass, processOf, rowsOf } from './processes.ts'

for (const dialect of await reachableDialects()) {
  test.group(`Claims of the db transport | ${dialect}`, (group) => {
    group.each.timeout(30_000)

    const setUp = async (cleanup: (fn: () => Promise<void>) => void) => {
      const bench = await dbBench(dialect)
      cleanup(() => bench.cleanup())
      const engine = processOf(bench)
      engine.session.listen()
      return { bench, engine }
    }

    test('a task whose worker died is run by another after the lease; the late answer is dropped', async ({
      assert,
      cleanup,
    }) => {
      const { bench, engine } = await setUp(cleanup)
      const [dead, other] = [processOf(bench), processOf(bench)]
      const gate = deferred()
      let ranOnOther = 0
      let pickedUp = false
      dead.session.serve('work', async () => {
        pickedUp = true
        await gate.promise
        return 'late'
      })
      const task = engine.session.task('work', 1)
      await engine.transport.dispatch(task)
      await pass([engine, dead], 'the pickup', () => pickedUp)
      other.session.serve('work', () => {
        ranOnOther += 1
        return 'in time'
      })
      await other.time.advance(LEASE_MS - 1_000)
      assert.equal(ranOnOther, 0)
      await pass([engine, other], 'the takeover', () => ranOnOther > 0)
      await pass([engine, other], 'the result', () => engine.session.heard(task).length > 0)
      gate.resolve(undefined)
      // Its renewal may notice before its record does.
      await pass([dead, engine], 'the report', () => dead.errors.length > 0)
      assert.match(dead.errors[0].message, /^(the claim on task .* was lost|lost 1 of 1 claim)/)
      assert.deepEqual(
        engine.session.heard(task).map(({ output }) => output),
        ['in time']
      )
      assert.equal(ranOnOther, 1)
    })

    test('a step that runs longer than the lease on a live worker runs once', async ({
      assert,
      cleanup,
    }) => {
      const { bench, engine } = await setUp(cleanup)
      const [slow, other] = [processOf(bench), processOf(bench)]
      const gate = deferred()
      let runs = 0
      let pickedUp = false
      slow.session.serve('slow', async () => {
        runs += 1
        pickedUp = true
        await gate.promise
      })
      const task = engine.session.task('slow', null)
      await engine.transport.dispatch(task)
      await pass([engine, slow], 'the pickup', () => pickedUp)
      other.session.serve('slow', () => void (runs += 1))
      for (let elapsed = 0; elapsed < 2 * LEASE_MS; elapsed += 1_000) {
        await slow.time.advance(1_000)
        // The claim may have been made long before the pickup was seen: time passes meanwhile.
        if (elapsed > LEASE_MS / 3) {
          await until(async () => {
            const [row] = await rowsOf(bench, T.tasks)
            return slow.time.now - Number(row.claimed_at) <= LEASE_MS / 3 + 1_000
          }, 'the renewal')
        }
        await other.time.advance(1_000)
      }
      assert.equal(runs, 1)
      gate.resolve(undefined)
      await pass([slow, engine], 'the result', () => engine.session.heard(task).length > 0)
      assert.equal(engine.session.heard(task)[0].status, 'completed')
      assert.deepEqual(slow.errors, [])
    })

    test('every step that a worker holds is kept, not only the one it took last', async ({
      assert,
      cleanup,
    }) => {
      const { bench, engine } = await setUp(cleanup)
      const tasks = [0, 1, 2].map((n) => engine.session.task('long', n))
      for (const task of tasks) await engine.transport.dispatch(task)
      const [busy, other] = [processOf(bench, { concurrency: 3 }), processOf(bench)]
      const gate = deferred()
      const runs: unknown[] = []
      busy.session.serve('long', (input) => {
        runs.push(input)
        return gate.promise
      })
      await pass([busy], 'three pickups', () => runs.length === 3)
      other.session.serve('long', (input) => void runs.push(input))
      const oldest = async () => {
        const rows = await rowsOf(bench, T.tasks)
        return Math.min(...rows.map((row) => Number(row.claimed_at)))
      }
      for (let elapsed = 0; elapsed < 2 * LEASE_MS; elapsed += LEASE_MS / 3) {
        await busy.time.advance(LEASE_MS / 3)
        await until(async () => busy.time.now - (await oldest()) < LEASE_MS / 3, 'the renewals')
        await other.time.advance(LEASE_MS / 3)
      }
      assert.deepEqual(runs.toSorted(), [0, 1, 2])
      gate.resolve(undefined)
      await pass([busy, engine], 'the results', () => engine.session.results.length === 3)
      assert.deepEqual(busy.errors, [])
    })

    test('an answer that cannot be written leaves its task, and both go together later', async ({
      assert,
      cleanup,
    }) => {
      const { bench, engine } = await setUp(cleanup)
      const worker = processOf(bench)
      const gate = deferred()
      let pickups = 0
      worker.session.serve('work', () => {
        pickups += 1
        return gate.promise
      })
      const task = engine.session.task('work', null)
      await engine.transport.dispatch(task)
      await pass([worker], 'the pickup', () => pickups === 1)
      const rename = (from: string, to: string) =>
        bench.database.db.connection().schema.renameTable(from, to)
      await rename(T.results, 'elsewhere')
      gate.resolve('once')
      await pass([worker], 'the failed write', () => worker.errors.length > 0)
      const waiting = await rowsOf(bench, T.tasks)
      assert.deepEqual(
        waiting.map((row) => row.step_id),
        [task.stepId]
      )
      await rename('elsewhere', T.results)
      await pass([worker, engine], 'the result', () => engine.session.heard(task).length > 0)
      assert.deepEqual(
        [engine.session.heard(task).map(({ output }) => output), pickups],
        [['once'], 1]
      )
      assert.lengthOf(await rowsOf(bench, T.tasks), 0)
    })

    test('a task that outlives its workers too often fails, and may be retried', async ({
      assert,
      cleanup,
    }) => {
      const { bench, engine } = await setUp(cleanup)
      const task = engine.session.task('poison', null)
      await engine.transport.dispatch(task)
      let pickups = 0
      let elapsed = 0
      for (let life = 0; life < 3; life++) {
        const worker = processOf(bench, { maxStalledCount: 2 })
        worker.time.jump(elapsed)
        worker.session.serve('poison', () => {
          pickups += 1
          return new Promise(() => {})
        })
        const wanted = life + 1
        await pass([worker], `pickup ${wanted}`, () => pickups === wanted)
        elapsed = worker.time.now - new FakeTime().now + LEASE_MS + 1_000
      }
      const last = processOf(bench, { maxStalledCount: 2 })
      last.time.jump(elapsed)
      last.session.serve('poison', () => void (pickups += 1))
      await pass([last, engine], 'the failure', () => engine.session.heard(task).length > 0)
      const [{ status, error }] = engine.session.heard(task)
      assert.deepEqual(
        { status, error, pickups },
        {
          status: 'failed',
          error: {
            message: 'remote step worker failed: claim lapsed more than 2 times',
            code: 'claim_lapsed',
            retryable: true,
          },
          pickups: 3,
        }
      )
    })

    test('a worker that is stopped hands its task over at once, and that is not counted', async ({
      assert,
      cleanup,
    }) => {
      const { bench, engine } = await setUp(cleanup)
      const task = engine.session.task('moved', null)
      await engine.transport.dispatch(task)
      let pickups = 0
      for (let deploy = 0; deploy < 3; deploy++) {
        const worker = processOf(bench, { maxStalledCount: 0 })
        worker.session.serve('moved', () => {
          pickups += 1
          return new Promise(() => {})
        })
        const wanted = deploy + 1
        await pass([worker], `pickup ${wanted}`, () => pickups === wanted)
        void worker.transport.close()
        await pass([worker], 'the release', async () => {
          const [row] = await rowsOf(bench, T.tasks)
          return row.claimed_by === null && Number(row.reclaims) === 0
        })
      }
      const last = processOf(bench, { maxStalledCount: 0 })
      last.session.serve('moved', () => 'done')
      await pass([last, engine], 'the result', () => engine.session.heard(task).length > 0)
      assert.equal(engine.session.heard(task)[0].output, 'done')
    })

    test('a redispatch of the same attempt changes nothing, a later one takes the task over', async ({
      assert,
      cleanup,
    }) => {
      const { bench, engine } = await setUp(cleanup)
      const first = engine.session.task('again', 'one', { attempt: 1 })
      await engine.transport.dispatch(first)
      await engine.transport.dispatch({ ...first, input: 'other' })
      const holder = processOf(bench)
      const gate = deferred()
      const seen: unknown[] = []
      holder.session.serve('again', async (input) => {
        seen.push(input)
        await gate.promise
        return 'of attempt 1'
      })
      await pass([holder], 'the pickup', () => seen.length > 0)
      await engine.transport.dispatch({ ...first, input: 'two', attempt: 2 })
      const other = processOf(bench)
      other.session.serve('again', (input) => {
        seen.push(input)
        return 'of attempt 2'
      })
      await pass([other, engine], 'the result', () => engine.session.heard(first).length > 0)
      gate.resolve(undefined)
      await pass([holder, engine], 'the report', () => holder.errors.length > 0)
      assert.deepEqual(seen, ['one', 'two'])
      assert.deepEqual(
        engine.session.heard(first).map(({ output, attempt }) => [output, attempt]),
        [['of attempt 2', 2]]
      )
    })

    test('a result that waits for its delete is replaced by that of the next attempt', async ({
      assert,
      cleanup,
    }) => {
      const bench = await dbBench(dialect)
      cleanup(() => bench.cleanup())
      // Where nobody is told, an engine would only take the answer by a late first look.
      if (dialect === 'postgres') processOf(bench).session.listen()
      const deaf = processOf(bench)
      const worker = processOf(bench)
      worker.session.serve('twice', (input) => input)
      const claims = new Set<unknown>()
      for (const attempt of [1, 2]) {
        const task = deaf.session.task('twice', `answer ${attempt}`, { attempt, stepId: 'twice:0' })
        await deaf.transport.dispatch(task)
        await pass([worker], 'the record', async () => {
          const waiting = await rowsOf(bench, T.tasks)
          return waiting.length === 0
        })
        if (attempt === 1)
          for (const row of await rowsOf(bench, T.results)) claims.add(row.claimed_by)
      }
      const rows = await rowsOf(bench, T.results)
      assert.deepEqual(
        rows.map((row) => [row.output, Number(row.attempt)]),
        [['"answer 2"', 2]]
      )
      // An engine that is told of it may have taken it again, never under the claim on the first answer.
      const [{ claimed_by: claim }] = rows
      if (dialect !== 'postgres') assert.isNull(claim)
      else assert.isTrue(claim === null || !claims.has(claim))
    })

    if (dialect === 'postgres') {
      test('a task that somebody else is just taking is passed over, not waited for', async ({
        assert,
        cleanup,
      }) => {
        const { bench, engine } = await setUp(cleanup)
        const [first, second] = ['first', 'second'].map((n) => engine.session.task('work', n))
        await engine.transport.dispatch(first)
        await engine.time.advance(1)
        await engine.transport.dispatch(second)
        const worker = processOf(bench)
        const seen: unknown[] = []
        await bench.database.connect().transaction(async (trx) => {
          const lock = `SELECT step_id FROM ${T.tasks} WHERE step_id = ? FOR UPDATE`
          await trx.rawQuery(lock, [first.stepId])
          worker.session.serve('work', (input) => void seen.push(input))
          await pass([worker], 'the other task', () => seen.length > 0)
        })
        await pass([worker], 'both', () => seen.length === 2)
        assert.deepEqual(seen, ['second', 'first'])
      })
    }

    test('the most urgent task is taken first, and the oldest among equals', async ({
      assert,
      cleanup,
    }) => {
      const { bench, engine } = await setUp(cleanup)
      for (const [input, priority] of [
        ['a', undefined],
        ['b', 1],
        ['c', undefined],
        ['d', 5],
        ['e', -1],
      ] as const) {
        await engine.transport.dispatch(engine.session.task('ranked', input, { priority }))
        await engine.time.advance(1)
      }
      const worker = processOf(bench)
      const seen: unknown[] = []
      let most = 0
      let running = 0
      worker.session.serve('ranked', async (input) => {
        most = Math.max(most, ++running)
        seen.push(input)
        await Promise.resolve()
        running -= 1
      })
      await pass([worker], 'all five', () => seen.length === 5)
      assert.deepEqual(seen, ['d', 'b', 'a', 'c', 'e'])
      assert.equal(most, 1)
    })

    test('concurrency 4 runs four at once and never more', async ({ assert, cleanup }) => {
      const { bench, engine } = await setUp(cleanup)
      for (let i = 0; i < 12; i++) await engine.transport.dispatch(engine.session.task('wide', i))
      const worker = processOf(bench, { concurrency: 4 })
      const gates: (() => void)[] = []
      let most = 0
      let running = 0
      worker.session.serve('wide', async () => {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => gates.push(resolve))
        running -= 1
      })
      await pass([worker], 'four at once', () => running === 4)
      const rows = await rowsOf(bench, T.tasks)
      const claimed = rows.filter((row) => row.claimed_by !== null)
      assert.lengthOf(claimed, 4)
      await pass([worker, engine], 'all twelve', () => {
        gates.shift()?.()
        return engine.session.results.length === 12
      })
      assert.equal(most, 4)
    })
  })
}
