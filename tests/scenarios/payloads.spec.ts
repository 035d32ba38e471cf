/*
 * Payloads: everything JSON comes back as it was, on every store; what has no JSON form, or is too large,
 * fails what made it with a sentence that names it, and never leaves a run stuck.
 */
import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const CIRCULAR: Record<string, unknown> = {}
CIRCULAR.self = CIRCULAR

const TEXTS = ['\u0000', 'a\u0000b', '\ud800', '\udc00\ud800', '👍', '\u2028', '"\\\n\t', '', 'ÿ', '\u0080\u009f'] // prettier-ignore

const VALUES: unknown[] = [
  ...TEXTS,
  null,
  0,
  -1.5e-300,
  Number.MAX_SAFE_INTEGER,
  true,
  [],
  {},
  [null, [[]], { a: [{}] }],
  JSON.parse('{"__proto__": {"x": 1}, "constructor": 2, "": 3, "toString": null}'),
  { text: TEXTS, [TEXTS[1]]: TEXTS[2] },
]

/** Each way in which a body or a caller hands a value over. */
const ROADS: Record<string, (ctx: WorkflowCtx, value: unknown) => Promise<unknown>> = {
  'workflow output': async (_, value) => value,
  'local result': async (ctx, value) => ctx.localStep('make', () => value),
  'side effect': async (ctx, value) => ctx.sideEffect(() => value),
  'step input': async (ctx, value) => ctx.step('echo', value),
  'step output': async (ctx, value) => ctx.step('make', value),
  'event value': async (ctx, value) => ctx.setEvent('key', value).then(() => value),
  'next link': async (ctx, value) => ctx.continueAsNew(value),
}

for (const kind of await storesUnderTest()) {
  test.group(`Payloads | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('every JSON value comes back as it was, however it travels', async ({ assert }) => {
      const engine = world.engine()
      engine.handle('echo', (input) => input)
      engine.register('all', '1', async (ctx, value: unknown) => {
        const local = await ctx.localStep('local', () => value)
        const effect = await ctx.sideEffect(() => value)
        const remote = await ctx.step('echo', value)
        await ctx.setEvent('key', value)
        const signal = await ctx.waitForSignal(`go:${ctx.runId}`)
        return { input: value, local, effect, remote, signal }
      })
      for (const [i, value] of VALUES.entries()) {
        const id = `r${i}`
        await engine.start('all', value, id)
        await world.parked(id)
        await engine.signal(`go:${id}`, value)
        const expected = { input: value, local: value, effect: value, remote: value, signal: value }
        assert.deepEqual(await world.output(id), expected, JSON.stringify(value))
        assert.deepEqual(await engine.getEvent(id, 'key'), value)
      }
    }).tags(['@scenario-11'])

    test('dates, undefined, classes and NaN take their JSON form, at once and on replay', async ({
      assert,
    }) => {
      class Point {
        constructor(readonly x: number) {}
      }
      const make = () => ({
        date: new Date(0),
        gone: undefined,
        nan: Number.NaN,
        list: [undefined, () => 1],
        map: new Map([[1, 2]]),
        point: new Point(1),
      })
      const form = {
        date: '1970-01-01T00:00:00.000Z',
        nan: null,
        list: [null, null],
        map: {},
        point: { x: 1 },
      }
      const engine = world.engine()
      const seen: unknown[] = []
      engine.handle('echo', () => make())
      engine.register('w', '1', async (ctx, input) => {
        const values = [
          input,
          await ctx.localStep('a', make),
          await ctx.sideEffect(make),
          await ctx.step('echo', 1),
          await ctx.localStep('nothing', () => undefined),
        ]
        seen.push(values)
        await ctx.waitForSignal('go')
        return make()
      })
      await engine.start('w', make(), 'r')
      await world.parked('r')
      await engine.signal('go', make())
      assert.deepEqual(await world.output('r'), form)
      for (const values of seen) assert.deepEqual(values, [form, form, form, form, undefined])
      assert.deepInclude(await world.store.getCheckpoint('r', 4), { status: 'completed' })
    })

    test('what a body does to a result does not reach history', async ({ assert }) => {
      const engine = world.engine({ continuations: {} })
      engine.register('w', '1', async (ctx, input: { list: number[] }) => {
        const value = await ctx.localStep('make', () => ({ list: [1] }))
        value.list.push(2)
        input.list.push(2)
        await ctx.waitForSignal('go')
        return [value, input]
      })
      await engine.start('w', { list: [1] }, 'r')
      await world.parked('r')
      const row = await world.store.getCheckpoint('r', 0)
      assert.deepEqual(row?.output, { list: [1] })
      assert.deepInclude(await world.run('r'), { input: { list: [1] } })
      await engine.signal('go')
      assert.deepEqual(await world.output('r'), [{ list: [1, 2] }, { list: [1, 2] }])
    })

    const unstorable: [string, () => unknown][] = [
      ['a BigInt', () => 5n],
      ['a circular structure', () => CIRCULAR],
      ['more than maxPayloadBytes', () => 'x'.repeat(1001)],
    ]
    for (const [what, make] of unstorable) {
      test(`${what} fails the run with a sentence, wherever it comes from`, async ({ assert }) => {
        const engine = world.engine({ maxPayloadBytes: 1000 })
        let attempts = 0
        engine.handle('echo', (input) => input)
        engine.handle('make', () => {
          attempts += 1
          return make()
        })
        for (const [road, travel] of Object.entries(ROADS)) {
          const id = road.replace(' ', '-')
          engine.register(id, '1', async (ctx) => travel(ctx, make()))
          await engine.start(id, null, id)
          const run = await world.ended(id)
          assert.equal(run.status, 'failed', road)
          assert.equal(run.error?.code, 'unstorable_value', `${road}: ${run.error?.message}`)
          assert.match(run.error!.message, /cannot be stored as JSON|is \d+ bytes of JSON/)
          assert.match(run.error!.message, /workflow|step|event|continueAsNew/)
          assert.notProperty(run, 'lockedBy')
        }
        assert.isAtMost(attempts, 1)
      })
    }

    test('a body may catch an unstorable value and go on; it is not tried again', async ({
      assert,
    }) => {
      const engine = world.engine()
      const attempts: string[] = []
      engine.handle('make', () => {
        attempts.push('remote')
        return 5n
      })
      engine.register('w', '1', async (ctx) => {
        const caught: string[] = []
        const note = (error: { code?: string }) => void caught.push(error.code!)
        await ctx.localStep('local', () => (attempts.push('local'), 5n), { retries: 5 }).catch(note)
        await ctx.step('make', 1, { retries: 5 }).catch(note)
        await ctx.sideEffect(() => 5n).catch(note)
        await ctx.setEvent('key', 5n).catch(note)
        await ctx.step('make', CIRCULAR).catch(note)
        await ctx.waitForSignal('go')
        return caught
      })
      await engine.start('w', null, 'r')
      await world.parked('r')
      await engine.signal('go')
      assert.deepEqual(await world.output('r'), Array(5).fill('unstorable_value'))
      assert.deepEqual(attempts, ['local', 'remote'])
    })

    test('anything may be thrown: the run fails with what can be told of it', async ({
      assert,
    }) => {
      const engine = world.engine()
      const thrown: [unknown, Record<string, unknown>][] = [
        ['text', { message: 'text' }],
        [undefined, { message: 'undefined' }],
        [null, { message: 'null' }],
        [5n, { message: '5' }],
        [Symbol('s'), { message: 'Symbol(s)' }],
        [
          { message: 'like an error', code: 'c' },
          { message: 'like an error', code: 'c' },
        ],
        [{ a: 1 }, { message: '{"a":1}' }],
        [CIRCULAR, { message: '[object Object]' }],
        [Object.assign(new Error('m\u0000\ud800'), { details: CIRCULAR }), { message: 'm\u0000\ud800' }], // prettier-ignore
        [Object.assign(new Error('m'), { details: { at: new Date(0) } }), { message: 'm', details: { at: '1970-01-01T00:00:00.000Z' } }], // prettier-ignore
      ]
      engine.register('body', '1', async (_, i: number) => {
        throw thrown[i][0]
      })
      engine.register('step', '1', async (ctx, i: number) =>
        ctx.localStep('throws', () => {
          throw thrown[i][0]
        })
      )
      engine.handle('throws', (i) => {
        throw thrown[i as number][0]
      })
      engine.register('remote', '1', async (ctx, i: number) => ctx.step('throws', i))
      for (const workflow of ['body', 'step', 'remote']) {
        for (const [i, [what, expected]] of thrown.entries()) {
          await engine.start(workflow, i, `${workflow}${i}`)
          const run = await world.ended(`${workflow}${i}`)
          assert.equal(run.status, 'failed')
          assert.containsSubset(run.error, expected, `${workflow}: ${String(what)}`)
        }
      }
    })

    test('what cannot even be described fails what threw it, once', async ({ assert }) => {
      const engine = world.engine()
      const unspeakable = Object.create(null) as Record<string, unknown>
      unspeakable.self = unspeakable
      const boom = () => {
        throw new Error('boom')
      }
      const gone = Proxy.revocable({}, {})
      gone.revoke()
      const thrown: unknown[] = [
        unspeakable,
        Object.assign(new Error('m'), { details: unspeakable }),
        Object.defineProperty(new Error('m'), 'code', { get: boom }),
        Object.defineProperty(new Error('m'), 'message', { get: boom }),
        new Proxy(new Error('m'), { get: boom }),
        gone.proxy,
      ]
      let ran = 0
      const fail = (i: unknown): never => {
        ran += 1
        throw thrown[i as number]
      }
      engine.handle('fail', fail)
      engine.register('body', '1', async (_, i) => fail(i))
      engine.register('local', '1', async (ctx, i) => ctx.localStep('fail', () => fail(i)))
      engine.register('capture', '1', async (ctx, i) => ctx.sideEffect(() => fail(i)))
      engine.register('remote', '1', async (ctx, i) => ctx.step('fail', i))
      engine.register('undo', '1', async (ctx, i) => {
        await ctx.localStep('do', () => 1, { compensate: () => fail(i) })
        throw new Error('m')
      })
      if (kind.complete) {
        engine.register('tx', '1', async (ctx, i) => ctx.transaction('fail', async () => fail(i)))
      }
      for (const road of ['body', 'local', 'capture', 'remote', 'undo', 'tx']) {
        if (road === 'tx' && !kind.complete) continue
        for (const i of thrown.keys()) {
          ran = 0
          await engine.start(road, i, `${road}${i}`)
          const run = await world.ended(`${road}${i}`)
          assert.equal(run.status, 'failed', `${road} ${i}`)
          assert.isString(run.error?.message)
          assert.equal(ran, 1, `${road} ${i}`)
        }
      }
    })

    test('a value that is nested too deep is refused, one that is not always comes back', async ({
      assert,
    }) => {
      const nested = (depth: number) => {
        let value: unknown = '[\\"['
        for (let i = 0; i < depth; i++) value = i % 2 ? { value } : [value]
        return value
      }
      const engine = world.engine()
      engine.handle('echo', (input) => input)
      for (const [name, travel] of Object.entries(ROADS)) {
        if (name === 'next link') continue
        engine.register(name, '1', async (ctx, depth: number) => {
          const value = await travel(ctx, name === 'step output' ? depth : nested(depth))
          await ctx.waitForSignal(`go:${ctx.runId}`)
          return value
        })
      }
      engine.handle('make', (depth) => nested(depth as number))
      for (const road of Object.keys(ROADS).filter((name) => name !== 'next link')) {
        await engine.start(road, 998, `${road}-deep`)
        await world.parked(`${road}-deep`)
        await engine.signal(`go:${road}-deep`, nested(1000))
        assert.deepEqual(await world.output(`${road}-deep`), nested(998), road)
        for (const depth of [1001, 4000]) {
          await engine.start(road, depth, `${road}-${depth}`)
          await world.quiet()
          await engine.signal(`go:${road}-${depth}`)
          const { status, error } = await world.ended(`${road}-${depth}`)
          assert.equal(status, 'failed', `${road} ${depth}`)
          assert.equal(error?.code, 'unstorable_value', `${road} ${depth}`)
        }
      }
      for (const depth of [1001, 4000]) {
        await assert.rejects(() => engine.start('workflow output', nested(depth), 'r'), /deeper/)
        await assert.rejects(() => engine.signal('go', nested(depth)), /deeper/)
      }
    })

    test('a hand-made continue-as-new with an unstorable input fails the run', async ({
      assert,
    }) => {
      const { ContinueAsNew } = await import('../../src/errors.ts')
      const engine = world.engine()
      engine.register('w', '1', async () => {
        throw new ContinueAsNew(5n)
      })
      await engine.start('w', null, 'r')
      const run = await world.ended('r')
      assert.containsSubset(run, { status: 'failed', error: { code: 'unstorable_value' } })
    })
  })
}
