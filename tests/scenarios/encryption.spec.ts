/*
 * Engines over an encrypting store: nothing that a payload holds reaches the store behind it, and a run that
 * an engine cannot read is left, untouched, to one that can.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { CodecStateStore, type PayloadCodec } from '../../src/store/codec/codec_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { FatalError } from '../../src/errors.ts'
import type { RunStatus } from '../../src/types/run.ts'
import { aesCodec, lateCodec } from '../helpers/codecs.ts'
import { type StoreKind, until, useWorld } from '../helpers/engines.ts'

/** In every payload of these tests, and in nothing else. */
const SECRET = 'S3CRET'

/** A store that notes whatever it is given, as text. */
function noting(store: StateStore, given: string[]): StateStore {
  return new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name) as unknown
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => {
        given.push(`${String(name)} ${JSON.stringify(args)}`)
        return Reflect.apply(member, target, args)
      }
    },
  })
}

const key = Buffer.alloc(32, 7)

for (const [name, codec] of [
  ['at once', aesCodec(key)],
  ['late', lateCodec(aesCodec(key))],
] as const) {
  const given: string[] = []
  let inner: StateStore
  const kind: StoreKind = {
    name,
    complete: true,
    open: async () => ({
      empty: async () => {
        given.length = 0
        inner = noting(new InMemoryStateStore(), given)
        return new CodecStateStore(inner, codec, { coverage: 'extended' })
      },
      close: async () => {},
    }),
  }

  test.group(`Encryption | a codec that answers ${name}`, (group) => {
    const world = useWorld(group, kind)
    const leaks = () => given.filter((call) => call.includes(SECRET))

    test('signals, events, steps, tasks and continuing as new', async ({ assert }) => {
      const engines = [world.engine(), world.engine()]
      for (const engine of engines) {
        engine.handle('echo', (input) => ({ echoed: input }))
        engine.register('w', '1', async (ctx, input: { turn: number; text: string }) => {
          const { text } = input
          if (input.turn === 0) return ctx.continueAsNew({ turn: 1, text })
          const local = await ctx.localStep('local', () => text)
          const remote = await ctx.step('echo', text)
          await ctx.setEvent('state', { text })
          const made = await ctx.transaction('tx', async () => text)
          await ctx.upsertSearchAttributes({ tier: 'gold' })
          const early = await ctx.waitForSignal('early')
          const signal = await ctx.waitForSignal('go')
          const event = await ctx.waitForEvent('paid', { match: { order: 1 } })
          const buffered = await ctx.waitForEvent('shipped')
          const task = await ctx.task('review', async () => {})
          return { local, remote, made, early, signal, event, buffered, task }
        })
      }
      const [first, second] = engines
      await first.signal('early', SECRET)
      await first.publishEvent('shipped', { text: SECRET })
      await first.start('w', { turn: 0, text: SECRET }, 'r')
      await world.parked('r~1')
      await second.signal('go', SECRET)
      await world.parked('r~1')
      await first.publishEvent('paid', { order: 1, text: SECRET })
      await world.parked('r~1')
      await second.completeTask('r~1', 'review', SECRET)
      assert.deepEqual(await world.output('r~1'), {
        local: SECRET,
        remote: { echoed: SECRET },
        made: SECRET,
        early: SECRET,
        signal: SECRET,
        event: { order: 1, text: SECRET },
        buffered: { text: SECRET },
        task: SECRET,
      })
      assert.deepEqual(await first.getEvent('r~1', 'state'), { text: SECRET })
      const found = await inner.listRuns({ attributes: [{ key: 'tier', op: 'eq', value: 'gold' }] })
      assert.deepEqual(
        found.map(({ id, workflow, status }) => [id, workflow, status]),
        [['r~1', 'w', 'completed']]
      )
      assert.deepEqual(leaks(), [])
    })

    test('sagas, and errors that quote what they failed on', async ({ assert }) => {
      const engine = world.engine()
      const undone: unknown[] = []
      engine.handle('charge', (input) => ({ charged: input }))
      engine.handle('refund', (input) => void undone.push(input))
      engine.handle('bad', (input) => {
        throw new FatalError(`cannot take ${String(input)}`, 'refused', { input })
      })
      engine.register('w', '1', async (ctx, text: string) => {
        await ctx.step('charge', text, { compensate: 'refund' })
        await ctx.localStep('kept', () => text, { compensate: () => void undone.push(text) })
        await ctx.step('bad', text)
      })
      await engine.start('w', SECRET, 'r')
      const { status, error } = await world.ended('r')
      assert.equal(status, 'failed')
      assert.include(error!.message, SECRET)
      assert.deepEqual(undone, [SECRET, { input: SECRET, output: { charged: SECRET } }])
      assert.deepEqual(leaks(), [])
    })

    test('children, failing ones and folded waves', async ({ assert }) => {
      const [first, second] = [world.engine(), world.engine()]
      for (const engine of [first, second]) {
        engine.register('child', '1', async (_, text: string) => {
          if (text.endsWith('!')) throw new Error(text)
          return { text }
        })
        engine.register('w', '1', async (ctx) => {
          const texts = Array.from({ length: 40 }, (_, i) => `${SECRET}${i}`)
          const all = await ctx.all<{ text: string }>('child', texts, { concurrency: 40 })
          const settled = await ctx.allSettled('child', [`${SECRET}!`, SECRET])
          const go = await ctx.waitForSignal('go')
          return [all.map(({ text }) => text), settled.map((one) => one.status), go]
        })
      }
      await first.start('w', null, 'r')
      await world.parked('r')
      const rows = await inner.listCheckpoints('r')
      assert.isTrue(rows.some((row) => row.name.startsWith('signal:child:fold:')))
      assert.lengthOf(await first.getRunChildren('r'), 42)
      await second.signal('go', SECRET)
      assert.deepEqual(await world.output('r'), [
        Array.from({ length: 40 }, (_, i) => `${SECRET}${i}`),
        ['rejected', 'fulfilled'],
        SECRET,
      ])
      assert.deepEqual(leaks(), [])
    })

    test('entities', async ({ assert }) => {
      const engine = world.engine()
      engine.registerEntity<{ log: string[] }>('journal', {
        initialState: () => ({ log: [] }),
        handlers: {
          add(state, text: string) {
            state.log.push(text)
            return state.log.length
          },
        },
      })
      engine.register('w', '1', async (ctx, text: string) =>
        ctx.callEntity('journal', 'k', 'add', text)
      )
      await Promise.all(['a', 'b', 'c'].map((id) => engine.start('w', `${SECRET}${id}`, id)))
      const sizes = await Promise.all(['a', 'b', 'c'].map((id) => world.output(id)))
      assert.sameMembers(sizes, [1, 2, 3])
      const state = await engine.getEntityState<{ log: string[] }>('journal', 'k')
      assert.sameMembers(state!.log, [`${SECRET}a`, `${SECRET}b`, `${SECRET}c`])
      assert.deepEqual(leaks(), [])
    })
  })
}

/** As the default store of a world, so that its reads see what the right key sees. */
const shared = new WeakMap<StateStore, InMemoryStateStore>()
const readable: StoreKind = {
  name: 'one key',
  complete: true,
  open: async () => ({
    empty: async () => {
      const inner = new InMemoryStateStore()
      const store = new CodecStateStore(inner, aesCodec(key))
      shared.set(store, inner)
      return store
    },
    close: async () => {},
  }),
}

test.group('Encryption | an engine with another key', (group) => {
  const world = useWorld(group, readable)
  const inner = () => shared.get(world.store.base)!
  /** An engine that cannot read what the others wrote. */
  const stranger = (codec: PayloadCodec = aesCodec()) =>
    world.engine({ store: new CodecStateStore(inner(), codec) })
  const stands = (id: string, status: RunStatus) =>
    until(
      async () => {
        const run = await inner().getRun(id)
        return run?.status === status
      },
      () => `run ${id} to be ${status}`
    )
  const register = (engine: WorkflowEngine) =>
    engine.register('w', '1', async (ctx, text: string) => {
      const made = await ctx.localStep('make', () => `${text}!`)
      return [made, await ctx.waitForSignal('go')]
    })
  const refusals = () =>
    world.reports.filter(
      (error) => (error as { code?: string } | undefined)?.code === 'payload_codec'
    )

  test('gives a run back untouched, and the engine with the right key runs it', async ({
    assert,
  }) => {
    const wrong = stranger()
    register(wrong)
    await world.store.createRun({
      id: 'r',
      workflow: 'w',
      workflowVersion: '1',
      status: 'pending',
      input: 'x',
      createdAt: new Date(world.time.now),
      updatedAt: new Date(world.time.now),
    })
    await wrong.runPending()
    await world.quiet()
    assert.deepInclude(await world.run('r'), { status: 'pending', input: 'x' })
    assert.lengthOf(refusals(), 1)
    assert.match(String(refusals()[0]), /run r: the input cannot be decoded/)
    // Left alone for a while: a poll does not try it again and again.
    await wrong.runPending()
    await world.quiet()
    assert.lengthOf(refusals(), 1)
    const right = world.engine()
    register(right)
    await right.runPending()
    await world.parked('r')
    await right.signal('go', 'now')
    assert.deepEqual(await world.output('r'), ['x!', 'now'])
  })

  test('does not hold up the runs that it can read', async ({ assert }) => {
    const right = world.engine()
    register(right)
    await right.start('w', 'x', 'r')
    await world.parked('r')
    await world.crash(right)
    const wrong = stranger()
    register(wrong)
    await wrong.start('w', 'y', 's')
    await stands('s', 'suspended')
    await wrong.recoverIncomplete()
    await wrong.resumeDueTimers()
    await wrong.signal('go', 'now')
    await stands('s', 'completed')
    assert.equal(await world.status('r'), 'suspended')
  })

  test('an unreadable step of history is no attempt, and loses nothing', async ({ assert }) => {
    const right = world.engine()
    register(right)
    await right.start('w', 'x', 'r')
    await world.parked('r')
    await world.crash(right)
    const row = (await inner().getCheckpoint('r', 0))!
    await inner().saveCheckpoint({ ...row, output: 'damaged' })
    const second = world.engine()
    register(second)
    await second.signal('go', 'now')
    await world.quiet()
    for (let pass = 0; pass < 12; pass++) {
      world.time.jump(61_000)
      await second.resumeDueTimers()
      await second.recoverIncomplete()
      await world.quiet()
    }
    const { status, recoveryAttempts = 0 } = await world.run('r')
    assert.deepEqual([status, recoveryAttempts], ['suspended', 0])
    assert.match(String(refusals()[0]), /run r, position 0: the output cannot be decoded/)
    await inner().saveCheckpoint(row)
    world.time.jump(61_000)
    await second.resumeDueTimers()
    assert.deepEqual(await world.output('r'), ['x!', 'now'])
  })

  test('one that died with its process waits for an engine with its key', async ({ assert }) => {
    const right = world.engine()
    right.register('w', '1', async (ctx) => ctx.localStep('hangs', () => new Promise(() => {})))
    await right.start('w', 'x', 'r')
    await world.reached('r', 'running')
    await world.quiet()
    await world.crash(right)
    const wrong = stranger()
    register(wrong)
    world.time.jump(120_000)
    for (let pass = 0; pass < 5; pass++) await wrong.recoverIncomplete()
    assert.lengthOf(refusals(), 1)
    world.time.jump(60_000)
    await wrong.recoverIncomplete()
    assert.lengthOf(refusals(), 2)
    const next = world.engine()
    next.register('w', '1', async (ctx, text) => ctx.localStep('hangs', () => text))
    await next.recoverIncomplete()
    assert.equal(await world.output('r'), 'x')
  })

  test('resuming it says what is wrong', async ({ assert }) => {
    const right = world.engine()
    register(right)
    await right.start('w', 'x', 'r')
    await world.parked('r')
    await world.crash(right)
    const wrong = stranger()
    register(wrong)
    await assert.rejects(() => wrong.resume('r'), /run r: the input cannot be decoded/)
    assert.equal(await world.status('r'), 'suspended')
  })

  test('a codec that fails to encode fails the start, and nothing is left of it', async ({
    assert,
  }) => {
    const broken = stranger({
      encode: () => Promise.reject(new Error('no key service')),
      decode: (value) => value,
    })
    register(broken)
    await assert.rejects(() => broken.start('w', 'x', 'r'), /run r: .*no key service/)
    assert.isNull(await inner().getRun('r'))
  })
})
