/*
 * Exactly-once database steps: the user's writes and the record that they happened stand or fall
 * together.
 */
import { test } from '@japa/runner'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'

type Tx = TransactionClientContract

for (const kind of await storesUnderTest()) {
  test.group(`Transactions | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)
    const onSql = kind.dialect !== undefined

    group.setup(async () => {
      await world.opened.database?.db.rawQuery('create table notes (text varchar(50) primary key)')
    })
    group.each.setup(async () => {
      await world.opened.database?.db.from('notes').delete()
    })

    const notes = async (): Promise<string[]> => {
      const rows = (await world.opened.database?.db.from('notes').select('text')) ?? []
      return rows.map((row: { text: string }) => row.text).sort()
    }
    /** Writes through the transaction; in memory there is nothing of the user's to write to. */
    const note = async (tx: unknown, text: string) => {
      if (onSql) await (tx as Tx).table('notes').insert({ text })
    }
    const noted = (...texts: string[]) => (onSql ? texts : [])

    if (!kind.complete) {
      test('a store without transactions refuses before a position is taken', async ({
        assert,
      }) => {
        const engine = world.engine()
        engine.register('w', '1', async (ctx) => {
          const code = await ctx
            .transaction('pay', async () => 1)
            .catch((error: { code: string; message: string }) => error)
          return [code, await ctx.localStep('a', () => 1)]
        })
        await engine.start('w', null, 'r')
        assert.containsSubset(await world.output('r'), [{ code: 'store_capability' }, 1])
        assert.deepEqual(await world.timeline('r'), [[0, 'a', 'completed']])
      })
      return
    }

    test('what it wrote and what it returned are there together, once', async ({ assert }) => {
      const engine = world.engine()
      const events = world.eventsOf(engine)
      let ran = 0
      engine.register('w', '1', async (ctx) => {
        const a = await ctx.transaction('pay', async (tx) => {
          ran += 1
          await note(tx, 'paid')
          return { paid: true }
        })
        await ctx.waitForSignal('go')
        return a
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      assert.deepEqual(await world.timeline('r'), [[0, 'pay', 'completed']])
      await engine.signal('go')
      assert.deepEqual(await world.output('r'), { paid: true })
      assert.deepEqual(await notes(), noted('paid'))
      assert.equal(ran, 1)
      assert.deepEqual(
        events.filter((event) => event.name === 'pay').map((event) => event.type),
        ['step.started', 'step.completed']
      )
    })

    test('a failure leaves nothing it wrote, and stays a failure', async ({ assert }) => {
      const engine = world.engine()
      const events = world.eventsOf(engine)
      let ran = 0
      engine.register('w', '1', async (ctx) => {
        const how = await ctx
          .transaction('pay', async (tx) => {
            ran += 1
            await note(tx, 'unpaid')
            throw new Error('no funds')
          })
          .catch((error: Error) => error.message)
        await ctx.waitForSignal('go')
        return how
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.signal('go')
      assert.equal(await world.output('r'), 'no funds')
      assert.deepEqual(await notes(), [])
      assert.equal(ran, 1)
      assert.deepEqual(
        events.filter((event) => event.name === 'pay').map((event) => event.type),
        ['step.started', 'step.failed']
      )
    })

    test('a result without a JSON form takes its writes back', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) =>
        ctx.transaction('pay', async (tx) => {
          await note(tx, 'unpaid')
          return 5n
        })
      )
      await engine.start('w', null, 'r')
      assert.containsSubset(await world.ended('r'), {
        status: 'failed',
        error: { code: 'unstorable_value' },
      })
      assert.deepEqual(await notes(), [])
    })

    test('a process that dies in it leaves nothing, and another runs it', async ({ assert }) => {
      const [doomed, living] = [world.engine(), world.engine()]
      const wrote = deferred<void>()
      for (const engine of [doomed, living]) {
        engine.register('w', '1', async (ctx) =>
          ctx.transaction('pay', async (tx) => {
            await note(tx, 'paid')
            wrote.resolve()
            if (engine === doomed) await new Promise(() => {})
            return 'by the living'
          })
        )
      }
      await doomed.start('w', null, 'r')
      await wrote.promise
      await world.crash(doomed)
      world.time.jump(30_001)
      await living.recoverIncomplete()
      assert.equal(await world.output('r'), 'by the living')
      assert.deepEqual(await notes(), noted('paid'))
    })

    test('an executor that lost its run while user code ran takes its writes back', async ({
      assert,
    }) => {
      const [slow, next] = [world.engine(), world.engine()]
      const gate = deferred<void>()
      const begun = deferred<void>()
      for (const engine of [slow, next]) {
        engine.register('w', '1', async (ctx) =>
          ctx.transaction('pay', async (tx) => {
            // On SQLite the connection is held from the first write on.
            if (engine === slow) {
              begun.resolve()
              await gate.promise
            }
            await note(tx, engine === slow ? 'stale' : 'fresh')
            return engine === slow ? 'stale' : 'fresh'
          })
        )
      }
      world.gate(slow).around('renewRunLock', () => new Promise(() => {}))
      await slow.start('w', null, 'r')
      await begun.promise
      world.time.jump(30_001)
      const recovered = next.recoverIncomplete()
      if (kind.dialect === 'sqlite') gate.resolve()
      await recovered
      if (kind.dialect !== 'sqlite') assert.equal(await world.output('r'), 'fresh')
      gate.resolve()
      const output = await world.output('r')
      await world.quiet()
      assert.deepEqual(await notes(), noted(output as string))
      assert.deepInclude(await world.store.getCheckpoint('r', 0), { output })
    })

    test('it runs beside other branches of its body', async ({ assert }) => {
      const engine = world.engine()
      engine.handle('remote', (input) => input)
      engine.register('w', '1', async (ctx) =>
        Promise.all([
          ctx.transaction('one', async (tx) => {
            await note(tx, 'one')
            return 1
          }),
          ctx.localStep('two', async () => 2),
          ctx.transaction('three', async (tx) => {
            await note(tx, 'three')
            return 3
          }),
          ctx.step('remote', 4),
          ctx.sideEffect(() => 5),
        ])
      )
      await engine.start('w', null, 'r')
      assert.deepEqual(await world.output('r'), [1, 2, 3, 4, 5])
      assert.deepEqual(await notes(), noted('one', 'three'))
    })

    test('a cancel while it runs leaves its writes if its record, and nothing otherwise', async ({
      assert,
    }) => {
      const engine = world.engine()
      const gate = deferred<void>()
      const begun = deferred<void>()
      engine.register('w', '1', async (ctx) =>
        ctx.transaction('pay', async (tx) => {
          begun.resolve()
          await gate.promise
          await note(tx, 'paid')
        })
      )
      await engine.start('w', null, 'r')
      await begun.promise
      const cancelling = engine.cancel('r')
      // With one connection the cancel waits for the transaction.
      if (kind.dialect !== 'sqlite') await cancelling
      gate.resolve()
      await cancelling
      await until(async () => (await world.status('r')) !== 'running', 'the end')
      await world.quiet()
      const row = await world.store.getCheckpoint('r', 0)
      assert.deepEqual(await notes(), row?.status === 'completed' ? noted('paid') : [])
    })

    test('nothing thrown fails it like any other thing', async ({ assert }) => {
      const engine = world.engine()
      let ran = 0
      engine.register('w', '1', async (ctx, thrown) =>
        ctx.transaction('pay', () => {
          ran += 1
          return Promise.reject(thrown === null ? null : undefined)
        })
      )
      for (const [input, message] of [
        [null, 'null'],
        [1, 'undefined'],
      ] as const) {
        await engine.start('w', input, message)
        assert.containsSubset(await world.ended(message), { status: 'failed', error: { message } })
      }
      assert.equal(ran, 2)
    })

    // Nothing of MySQL waits for the COMMIT to be refused.
    if (onSql && kind.dialect !== 'mysql') {
      test('what the database refuses at the commit fails the step: the body never saw it done', async ({
        assert,
      }) => {
        const { db } = world.opened.database!
        if (kind.dialect === 'sqlite') await db.rawQuery('PRAGMA foreign_keys = ON')
        await db.rawQuery(
          'CREATE TABLE replies (text varchar(50) REFERENCES notes (text) DEFERRABLE INITIALLY DEFERRED)'
        )
        const engine = world.engine()
        let ran = 0
        engine.register('w', '1', async (ctx) => {
          const code = await ctx
            .transaction('reply', async (tx) => {
              ran += 1
              await (tx as Tx).table('replies').insert({ text: 'to nobody' })
              return 'replied'
            })
            .catch((error: { code: string }) => error.code)
          await ctx.waitForSignal('go')
          return code
        })
        await engine.start('w', null, 'r')
        await world.parked('r')
        await engine.signal('go')
        assert.equal(await world.output('r'), 'transaction_spoiled')
        assert.equal(ran, 1)
        await db.rawQuery('DROP TABLE replies')
      })
    }

    if (onSql) {
      test('an error of the database that the body caught inside fails the step, or is none', async ({
        assert,
      }) => {
        const engine = world.engine()
        let ran = 0
        engine.register('w', '1', async (ctx) =>
          ctx.transaction('pay', async (tx) => {
            ran += 1
            await note(tx, 'paid')
            // Postgres undoes everything from here on; the others go on.
            await note(tx, 'paid').catch(() => {})
            return 'swallowed'
          })
        )
        await engine.start('w', null, 'r')
        const run = await world.ended('r')
        assert.equal(ran, 1)
        if (kind.dialect === 'postgres') {
          assert.deepEqual(await notes(), [])
          assert.containsSubset(run, { status: 'failed', error: { code: 'transaction_spoiled' } })
        } else {
          assert.deepEqual(await notes(), ['paid'])
        }
      })
    }

    if (kind.dialect === 'postgres' || kind.dialect === 'mysql') {
      test('a connection that is lost under the body fails no step: it runs again', async ({
        assert,
      }) => {
        const { db } = world.opened.database!
        const onPostgres = kind.dialect === 'postgres'
        const cut = async (tx: Tx) => {
          const sent = await tx.rawQuery(
            `select ${onPostgres ? 'pg_backend_pid()' : 'connection_id()'} as id`
          )
          const [{ id }] = onPostgres ? sent.rows : sent[0]
          await db.rawQuery(onPostgres ? 'select pg_terminate_backend(?)' : 'kill ?', [id])
        }
        const engine = world.engine()
        let ran = 0
        engine.register('w', '1', async (ctx) =>
          ctx.transaction('pay', async (tx) => {
            ran += 1
            if (ran === 1) await cut(tx as Tx)
            await note(tx, 'paid')
            return ran
          })
        )
        await engine.start('w', null, 'r')
        await until(() => ran === 1, 'the body ran')
        await world.quiet()
        world.time.jump(30_001)
        await engine.recoverIncomplete()
        assert.equal(await world.output('r'), 2)
        assert.deepEqual(await notes(), ['paid'])
      })
    }
  })
}
