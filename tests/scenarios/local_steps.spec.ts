/*
 * Local steps: retries in process, timeouts, failures that stay what they were, and what is recorded of
 * them.
 */
import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import type { StepOptions } from '../../src/types/step.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Local steps | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    /** Runs one step that fails a number of times; answers the moments of its attempts. */
    const attempts = async (id: string, options: StepOptions, failures: number) => {
      const engine = world.engine()
      const moments: number[] = []
      engine.register('w', '1', async (ctx) =>
        ctx.localStep(
          'work',
          () => {
            moments.push(world.time.now)
            if (moments.length <= failures) throw new Error(`attempt ${moments.length}`)
            return moments.length
          },
          options
        )
      )
      await engine.start('w', null, id)
      await world.reached(id, 'running', 'completed', 'failed')
      await world.quiet()
      for (let i = 0; i < 200 && (await world.status(id)) === 'running'; i++) {
        await world.time.advance(50)
      }
      await world.crash(engine)
      return moments.map((moment) => moment - moments[0])
    }

    test('a step is tried as often as it says, the last failure is the run’s', async ({
      assert,
    }) => {
      assert.deepEqual(await attempts('once', {}, 1), [0])
      assert.deepEqual(await attempts('thrice', { retries: 3 }, 3), [0, 0, 0])
      assert.deepEqual(await attempts('enough', { retries: 3 }, 2), [0, 0, 0])
      assert.containsSubset(await world.run('thrice'), {
        status: 'failed',
        error: { message: 'attempt 3', step: { seq: 0, name: 'work' } },
      })
      assert.deepInclude(await world.run('enough'), { status: 'completed', output: 3 })
      assert.containsSubset(await world.rows('thrice'), [{ attempts: 3, status: 'failed' }])
      assert.containsSubset(await world.rows('enough'), [{ attempts: 3, status: 'completed' }])
    })

    test('attempts are spaced by the backoff', async ({ assert }) => {
      const fixed = await attempts('fixed', { retries: 3, backoffMs: 100 }, 3)
      assert.deepEqual(fixed, [0, 100, 200])
      const exponential = { retries: 5, backoff: 'exp', backoffMs: 100, backoffMaxMs: 350 } as const
      assert.deepEqual(await attempts('exp', exponential, 5), [0, 100, 300, 650, 1000])
      const jittered = await attempts('jitter', { retries: 4, backoffMs: 1000, jitter: true }, 4)
      for (const [i, moment] of jittered.entries()) {
        assert.isAtLeast(moment, i * 500)
        assert.isAtMost(moment, i * 1000)
      }
    })

    test('a fatal error, of any class and copy, is not tried again', async ({ assert }) => {
      class CardDeclined extends FatalError {
        constructor() {
          super('declined', 'card_declined', { card: '1234' })
        }
      }
      const elsewhere = Object.assign(new Error('foreign'), {
        [Symbol.for('@agora/durable:fatal')]: true,
        code: 'foreign',
      })
      const engine = world.engine()
      for (const [name, error, expected] of [
        ['own', new CardDeclined(), { code: 'card_declined', details: { card: '1234' } }],
        ['foreign', elsewhere, { code: 'foreign' }],
      ] as const) {
        let tries = 0
        engine.register(name, '1', async (ctx) =>
          ctx.localStep(
            'work',
            () => {
              tries += 1
              throw error
            },
            { retries: 5 }
          )
        )
        await engine.start(name, null, name)
        assert.containsSubset(await world.ended(name), { status: 'failed', error: expected })
        assert.equal(tries, 1)
      }
    })

    test('an attempt that takes too long fails and is tried again; its late end is ignored', async ({
      assert,
    }) => {
      const engine = world.engine()
      const gates = [deferred<string>(), deferred<string>()]
      let tries = 0
      engine.register('w', '1', async (ctx) => {
        const value = await ctx.localStep('work', () => gates[tries++].promise, {
          retries: 2,
          timeoutMs: 1000,
        })
        await ctx.waitForSignal('go')
        return value
      })
      await engine.start('w', null, 'r')
      await world.reached('r', 'running')
      await world.quiet()
      await world.time.advance(999)
      assert.equal(tries, 1)
      await world.time.advance(1)
      assert.equal(tries, 2)
      gates[0].resolve('too late')
      await world.quiet()
      gates[1].resolve('in time')
      await world.parked('r')
      await engine.signal('go')
      assert.equal(await world.output('r'), 'in time')
    })

    test('a step that times out for good fails with a code', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) =>
        ctx.localStep('work', () => new Promise(() => {}), { timeoutMs: 500 })
      )
      await engine.start('w', null, 'r')
      await world.reached('r', 'running')
      await world.quiet()
      await world.time.advance(500)
      assert.containsSubset(await world.ended('r'), {
        status: 'failed',
        error: { code: 'step_timeout', message: 'step "work" took longer than 500ms' },
      })
    })

    test('policies that make no sense are refused by name', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      const policies: Record<string, unknown>[] = [
        { timeoutMs: Number.NaN },
        { timeoutMs: -1 },
        { timeoutMs: '5s' },
        { backoffMs: Number.NaN },
        { backoffMs: Infinity },
        { backoffMaxMs: -5 },
        { retries: Number.NaN },
        { retries: '3' },
        { retries: Infinity },
        { retries: 2 ** 31 },
      ]
      engine.register('local', '1', async (ctx, i: number) =>
        ctx.localStep('work', () => 'done', policies[i])
      )
      engine.register('remote', '1', async (ctx, i: number) => ctx.step('work', 1, policies[i]))
      for (const workflow of ['local', 'remote']) {
        for (const [i, policy] of policies.entries()) {
          const id = `${workflow}${i}`
          await engine.start(workflow, i, id)
          const run = await world.ended(id)
          const [option] = Object.keys(policy)
          assert.equal(run.status, 'failed', JSON.stringify(policy))
          assert.equal(run.error?.code, 'invalid_argument')
          assert.include(run.error?.message, option)
          assert.deepEqual(await world.rows(id), [])
        }
      }
      assert.deepEqual(world.held.sent, [])
    })

    test('names that no store keeps are refused before a position is taken', async ({ assert }) => {
      const engine = world.engine({ transport: 'held' })
      const names: unknown[] = ['', 'x'.repeat(513), 'a\u0000', 'a\n', '\ud800', 5, undefined]
      engine.register('w', '1', async (ctx, i: number) => {
        const name = names[i] as string
        const codes: unknown[] = []
        const note = (error: { code: string }) => void codes.push(error.code)
        await ctx.localStep(name, () => 1).catch(note)
        await ctx.transaction(name, async () => 1).catch(note)
        await ctx.step(name, 1).catch(note)
        await ctx.setEvent(name, 1).catch(note)
        await ctx.patched(name).catch(note)
        await ctx.waitForSignal(i === 1 ? '' : name).catch(note)
        return codes
      })
      for (const i of names.keys()) {
        await engine.start('w', i, `r${i}`)
        assert.deepEqual(await world.output(`r${i}`), Array(6).fill('invalid_argument'))
        assert.deepEqual(await world.rows(`r${i}`), [])
      }
      engine.register('long', '1', async (ctx) => ctx.localStep('é'.repeat(256), () => 'fits'))
      await engine.start('long', null, 'long')
      assert.equal(await world.output('long'), 'fits')
    })

    test('a failure that the body caught stays caught on every replay', async ({ assert }) => {
      const engine = world.engine()
      let tries = 0
      const seen: string[] = []
      engine.register('w', '1', async (ctx) => {
        const how = await ctx
          .localStep('flaky', () => {
            tries += 1
            if (tries === 1)
              throw Object.assign(new Error('once'), { code: 'c', details: { d: 1 } })
            return 'fine'
          })
          .catch((error: Error & { code: string; details: unknown }) => {
            return `${error.message} ${error.code} ${JSON.stringify(error.details)}`
          })
        seen.push(how)
        await ctx.waitForSignal('one')
        await ctx.waitForSignal('two')
        return how
      })
      await engine.start('w', null, 'r')
      for (const token of ['one', 'two']) {
        await world.parked('r')
        await engine.signal(token)
      }
      assert.equal(await world.output('r'), 'once c {"d":1}')
      assert.deepEqual([...new Set(seen)], ['once c {"d":1}'])
      assert.equal(tries, 1)
    })

    test('the lines of the last attempt are kept, each sub-process under its own name', async ({
      assert,
    }) => {
      const engine = world.engine()
      let tries = 0
      engine.register('w', '1', async (ctx) =>
        ctx.localStep(
          'work',
          async (log) => {
            tries += 1
            log.info(`attempt ${tries}`, { tries })
            if (tries === 1) throw new Error('again')
            log.heartbeat({ done: 1 })
            await Promise.all(
              ['a', 'b'].map((id) =>
                log.subProcess(`sub ${id}`, async () => log.debug(`in ${id}`), { id })
              )
            )
            log.warn('careful')
            return 'done'
          },
          { retries: 2 }
        )
      )
      await engine.start('w', null, 'r')
      await world.quiet()
      await world.time.advance(0)
      await world.ended('r')
      const [row] = await world.rows('r')
      const lines = row.events!.map(({ message, subId, level }) => [level, message, subId])
      assert.deepEqual(lines[0], ['info', 'attempt 2', undefined])
      assert.deepInclude(lines, ['debug', 'in a', 'a'])
      assert.deepInclude(lines, ['debug', 'in b', 'b'])
      assert.deepEqual(lines.at(-1), ['warn', 'careful', undefined])
      assert.deepInclude(row.events![0], { data: { tries: 2 }, at: world.time.now })
      assert.lengthOf(
        row.events!.filter((event) => event.status === 'ok'),
        2
      )
    })

    test('a step that says nothing keeps no lines', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => ctx.localStep('silent', () => 1))
      await engine.start('w', null, 'r')
      await world.ended('r')
      assert.notProperty(await world.store.getCheckpoint('r', 0), 'events')
    })

    test('that a step has begun is recorded only when it takes its time', async ({ assert }) => {
      for (const trackStepStart of [true, false]) {
        const engine = world.engine({ trackStepStart })
        const gate = deferred<void>()
        const statuses: string[] = []
        const watch = (rows: { row: { name: string; status: string } }[]) => {
          for (const { row } of rows) statuses.push(`${row.name} ${row.status}`)
        }
        world.gate(engine).around('commitTurn', (proceed, [commit]) => {
          watch((commit as { rows?: [] }).rows ?? [])
          return proceed()
        })
        world.gate(engine).around('saveCheckpoint', (proceed, [row]) => {
          watch([{ row: row as { name: string; status: string } }])
          return proceed()
        })
        engine.register('w', '1', async (ctx) => {
          await ctx.localStep('short', () => 1)
          await ctx.localStep('also short', async () => 1)
          await ctx.localStep('long', () => gate.promise)
        })
        const id = `r-${trackStepStart}`
        await engine.start('w', null, id)
        await world.reached(id, 'running')
        await world.quiet()
        assert.deepEqual(statuses, ['short completed', 'also short completed'])
        await world.time.advance(25)
        const begun = trackStepStart ? ['long running'] : []
        assert.deepEqual(statuses.slice(2), begun)
        const row = await world.store.getCheckpoint(id, 2)
        assert.equal(row?.status, trackStepStart ? 'running' : undefined)
        gate.resolve()
        await world.ended(id)
        assert.deepEqual(statuses.slice(2), [...begun, 'long completed'])
      }
    })

    test('a step that had begun when its engine died runs again, earlier ones do not', async ({
      assert,
    }) => {
      const [doomed, living] = [world.engine(), world.engine()]
      const ran: string[] = []
      for (const engine of [doomed, living]) {
        engine.register('w', '1', async (ctx) => {
          const a = await ctx.localStep('a', () => (ran.push('a'), 'a'))
          const t = await ctx.now()
          const b = await ctx.localStep('b', () => {
            ran.push('b')
            return engine === doomed ? new Promise<string>(() => {}) : 'b'
          })
          return [a, t, b]
        })
      }
      await doomed.start('w', null, 'r')
      await world.reached('r', 'running')
      await world.quiet()
      await world.time.advance(30)
      const begun = world.time.now - 30
      assert.deepInclude(await world.timeline('r'), [2, 'b', 'running'])
      await world.crash(doomed)
      world.time.jump(30_001)
      await living.recoverIncomplete()
      assert.deepEqual(await world.output('r'), ['a', begun, 'b'])
      assert.deepEqual(ran, ['a', 'b', 'b'])
    })
  })
}
