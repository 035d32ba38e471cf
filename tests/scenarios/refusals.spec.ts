/*
 * What callers may get wrong: each is refused with a clear error before anything is written.
 */
import { test } from '@japa/runner'
import type { StartOptions } from '../../src/types/workflow.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const CIRCULAR: Record<string, unknown> = {}
CIRCULAR.self = CIRCULAR

/** Keys that no store may be asked to keep, and what is said about them. */
const BAD_KEYS: [string, unknown, RegExp][] = [
  ['empty', '', /must not be empty/],
  ['256 bytes long', 'x'.repeat(256), /is 256 bytes long, at most 255 are allowed/],
  ['256 bytes in 128 characters', 'é'.repeat(128), /is 256 bytes long/],
  ['with a zero byte', 'a\u0000b', /must not contain control characters/],
  ['with a line break', 'a\nb', /must not contain control characters/],
  ['with half a surrogate pair', 'a\ud800', /must be well-formed Unicode/],
  ['a number', 5, /must be a string, got number/],
  ['undefined', undefined, /must be a string, got undefined/],
  ['null', null, /must be a string, got null/],
]

for (const kind of await storesUnderTest()) {
  test.group(`Refusals | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    const refused = async (act: () => Promise<unknown>) => {
      try {
        await act()
      } catch (error) {
        return error as Error & { code?: string }
      }
      throw new Error('was not refused')
    }

    const nothingWritten = async (assert: { equal(a: unknown, b: unknown): void }) => {
      await world.quiet()
      assert.equal(await world.store.countRuns({}), 0)
    }

    test('run ids that no store keeps', async ({ assert }) => {
      for (const [what, key, message] of BAD_KEYS) {
        const engine = world.engine()
        engine.register('w', '1', async () => 'done')
        const error = await refused(() => engine.start('w', null, key as string))
        assert.equal(error.code, 'invalid_argument', what)
        assert.match(error.message, /^start: the run id /)
        assert.match(error.message, message)
      }
      await nothingWritten(assert)
    }).tags(['@scenario-7'])

    test('the longest run id, and one of unusual characters, work', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1)
        return ctx.runId
      })
      for (const id of [
        'é'.repeat(127) + 'x',
        '  ',
        '007',
        'a:b:c',
        'Ä/ß?#%25',
        '👍',
        'o\'r"x\\',
      ]) {
        await engine.start('w', null, id)
        assert.equal(await world.output(id), id)
      }
    }).tags(['@scenario-10'])

    test('tags, namespaces, origins and attribute names that no store keeps', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 'done')
      for (const [what, key, message] of BAD_KEYS) {
        const attempts: [string, StartOptions][] = [['tag', { tags: ['fine', key as string] }]]
        if (key !== undefined && key !== '' && key !== null) {
          attempts.push(['namespace', { namespace: key as string }])
        }
        if (key !== undefined) attempts.push(['origin', { origin: key as string }])
        if (typeof key === 'string') {
          attempts.push(['search attribute', { searchAttributes: { [key]: 1 } }])
        }
        for (const [name, options] of attempts) {
          const error = await refused(() => engine.start('w', null, 'r', options))
          assert.equal(error.code, 'invalid_argument', `${name} ${what}`)
          assert.match(error.message, new RegExp(name))
          assert.match(error.message, message)
        }
      }
      await nothingWritten(assert)
    })

    test('search attributes that cannot be compared', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 'done')
      for (const value of [null, undefined, Number.NaN, Infinity, {}, [], new Date(0), 5n]) {
        const searchAttributes = { key: value as never }
        const error = await refused(() => engine.start('w', null, 'r', { searchAttributes }))
        assert.equal(error.code, 'invalid_argument', String(value))
        assert.match(
          error.message,
          /search attribute "key" must be a string, a boolean or a finite/
        )
      }
      for (const value of ['a\u0000b', 'a\udc00']) {
        const searchAttributes = { key: value }
        const error = await refused(() => engine.start('w', null, 'r', { searchAttributes }))
        assert.equal(error.code, 'invalid_argument', JSON.stringify(value))
        assert.match(error.message, /search attribute "key"/)
      }
      await nothingWritten(assert)
    })

    test('an unknown workflow and an unknown version', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '2', async () => 'done')
      engine.register('w', '10', async () => 'done')
      const unknown = await refused(() => engine.start('nobody', null, 'r'))
      assert.equal(unknown.code, 'workflow_not_registered')
      assert.equal(unknown.message, 'workflow nobody is not registered')
      const version = await refused(() => engine.start('w', null, 'r', { version: '3' }))
      assert.equal(version.code, 'workflow_not_registered')
      assert.match(version.message, /workflow w@3 is not registered.*2, 10/)
      const nameless = await refused(() => engine.start(class {} as never, null as never, 'r'))
      assert.equal(nameless.code, 'invalid_argument')
      assert.match(nameless.message, /has no `static workflow/)
      await nothingWritten(assert)
    })

    test('inputs without a JSON form, and inputs that are too large', async ({ assert }) => {
      const engine = world.engine({ maxPayloadBytes: 100 })
      engine.register('w', '1', async () => 'done')
      const cases: [unknown, RegExp][] = [
        [5n, /the input of workflow "w" cannot be stored as JSON.*BigInt/],
        [{ deep: [5n] }, /cannot be stored as JSON/],
        [CIRCULAR, /cannot be stored as JSON.*circular/i],
        [{ toJSON: () => 5n }, /cannot be stored as JSON/],
        ['x'.repeat(99), /is 101 bytes of JSON, more than the 100 allowed \(maxPayloadBytes\)/],
        [{ a: 'é'.repeat(47) }, /is 102 bytes of JSON/],
      ]
      for (const [input, message] of cases) {
        const error = await refused(() => engine.start('w', input, 'r'))
        assert.equal(error.code, 'invalid_argument')
        assert.match(error.message, message)
      }
      await nothingWritten(assert)
      await engine.start('w', 'x'.repeat(98), 'r')
      assert.equal(await world.output('r'), 'done')
    })

    test('options that are not what they say', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 'done')
      const cases: [Record<string, unknown>, RegExp][] = [
        [{ startAt: Number.NaN }, /startAt must be a valid Date or epoch ms/],
        [{ startAt: new Date('never') }, /startAt must be a valid Date/],
        [{ startAt: 'tomorrow' }, /startAt must be/],
        [{ startAt: '2031-01-01' }, /startAt must be/],
        [{ startAt: Infinity }, /startAt must be/],
        [{ priority: 1.5 }, /priority must be an integer/],
        [{ priority: '1' }, /priority must be an integer/],
        [{ priority: Number.NaN }, /priority must be an integer/],
        [{ priority: 2 ** 31 }, /priority must be/],
        [{ startAt: 1e300 }, /startAt must be/],
      ]
      for (const [options, message] of cases) {
        const error = await refused(() => engine.start('w', null, 'r', options as StartOptions))
        assert.equal(error.code, 'invalid_argument', JSON.stringify(options))
        assert.match(error.message, message)
      }
      await nothingWritten(assert)
    })

    test('inputs that the workflow refuses', async ({ assert }) => {
      const engine = world.engine()
      engine.register('picky', '1', async () => 'done', {
        validateInput: (input) => (input === 'bad' ? 'it is bad' : undefined),
      })
      engine.register('strict', '1', async () => 'done', {
        validateInput: (input) => {
          if (input === 'bad') throw new Error('strictly no')
        },
      })
      const picky = await refused(() => engine.start('picky', 'bad', 'r'))
      assert.equal(picky.code, 'invalid_argument')
      assert.match(picky.message, /input of workflow "picky" was refused: it is bad/)
      const strict = await refused(() => engine.start('strict', 'bad', 'r'))
      assert.equal(strict.message, 'strictly no')
      await nothingWritten(assert)
    })

    test('signals without a usable token or payload are not half sent', async ({ assert }) => {
      const engine = world.engine({ maxPayloadBytes: 100 })
      engine.register('w', '1', async (ctx) => ctx.waitForSignal('go'))
      for (const [what, token, message] of BAD_KEYS) {
        if (typeof token === 'string' && Buffer.byteLength(token) > 255) continue
        const error = await refused(() => engine.signal(token as string, 1))
        assert.equal(error.code, 'invalid_argument', what)
        assert.match(error.message, /^signal: the token /)
        assert.match(error.message, message)
        const withStart = await refused(() =>
          engine.signalWithStart('w', null, 'r', { token: token as string })
        )
        assert.equal(withStart.code, 'invalid_argument')
      }
      for (const payload of [5n, CIRCULAR, 'x'.repeat(100)]) {
        const error = await refused(() => engine.signal('go', payload))
        assert.equal(error.code, 'invalid_argument')
        assert.match(error.message, /the payload of signal "go"/)
        await refused(() => engine.signalWithStart('w', null, 'r', { token: 'go', payload }))
      }
      await nothingWritten(assert)
      assert.isNull(await world.store.takeBufferedSignal('go'))
    })

    test('a token of any length joins a wait and its signal', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, token: string) => ctx.waitForSignal(token))
      const tokens = [
        'x'.repeat(248),
        'x'.repeat(249),
        'y'.repeat(5000),
        '👍'.repeat(100),
        'a:b c/d',
      ]
      for (const [i, token] of tokens.entries()) {
        const id = `r${i}`
        await engine.start('w', token, id)
        await world.parked(id)
        await engine.signal(token, i)
        assert.equal(await world.output(id), i)
        await engine.signal(token, 'first')
        await engine.start('w', token, `${id}-late`)
        assert.equal(await world.output(`${id}-late`), 'first')
      }
    })

    test('workflows that cannot be registered', ({ assert }) => {
      const engine = world.engine()
      const body = async () => 'done'
      for (const [, key, message] of BAD_KEYS) {
        assert.throws(() => engine.register(key as string, '1', body), message)
        assert.throws(() => engine.register('w', key as string, body), message)
        assert.throws(() => engine.register('w', '1', body, { tags: [key as string] }), message)
      }
      for (const fn of [undefined, null, 'body', {}, 5]) {
        assert.throws(() => engine.register('w', '1', fn as never), /"w" needs a function/)
      }
      assert.throws(
        () => engine.register('w', '1', body, { inputSchema: {} as never }),
        /not a Standard Schema/
      )
      assert.throws(
        () => engine.register('w', '1', body, { requires: ['gpu'] }),
        /"requires" of workflow "w" is not supported/
      )
      const handlers: [object, RegExp][] = [
        [{ onError: 'h' }, /onError of workflow "w" must be a list/],
        [{ onError: [{ workflow: '' }] }, /onError of workflow "w": the handler/],
        [{ onError: [null] }, /onError of workflow "w": the handler/],
        [{ onError: [{ code: 5, workflow: 'h' }] }, /the code must be a string/],
        [{ deadLetterWorkflow: 5 }, /deadLetterWorkflow of workflow "w"/],
      ]
      for (const [options, message] of handlers) {
        assert.throws(() => engine.register('w', '1', body, options), message)
      }
      for (const executionTimeout of ['soon', -1, Number.NaN, Infinity, 0, '0s']) {
        assert.throws(
          () => engine.register('w', '1', body, { executionTimeout }),
          /executionTimeout of workflow "w" (cannot be used|must be longer)/
        )
      }
      assert.throws(
        () => world.engine({ transport: 'none' }).handle('s', body),
        /needs a transport/
      )
    })

    test('waits for a run that cannot be, or for a time that is none', async ({ assert }) => {
      const engine = world.engine()
      for (const [what, id, message] of BAD_KEYS) {
        const error = await refused(() => engine.waitForRun(id as string))
        assert.equal(error.code, 'invalid_argument', what)
        assert.match(error.message, message, what)
      }
      for (const timeoutMs of [Number.NaN, -1, null, '5']) {
        const error = await refused(() =>
          engine.waitForRun('r', { timeoutMs: timeoutMs as number })
        )
        assert.equal(error.code, 'invalid_argument', String(timeoutMs))
      }
    })

    test('listings by what no store could compare', async ({ assert }) => {
      const engine = world.engine()
      const wrong: [object, RegExp][] = [
        [
          { attributes: [{ key: 'a', op: '==', value: 1 }] },
          /operator of attribute "a" is one of eq/,
        ],
        [{ attributes: [{ op: 'eq', value: 1 }] }, /need a key, got undefined/],
        [{ createdAfter: 'x' }, /createdAfter must be epoch ms, got "x"/],
        [{ wakeBefore: Number.NaN }, /wakeBefore must be epoch ms, got NaN/],
      ]
      for (const [query, message] of wrong) {
        for (const verb of ['listRuns', 'countRuns'] as const) {
          const error = await refused(() => engine[verb](query))
          assert.equal(error.code, 'invalid_argument')
          assert.match(error.message, message)
        }
      }
    })

    test('verbs on runs that do not exist', async ({ assert }) => {
      const engine = world.engine()
      assert.isNull(await engine.cancel('nobody'))
      assert.isNull(await engine.cancel('nobody', { compensate: true }))
      assert.isNull(await engine.requeue('nobody'))
      assert.isNull(await engine.runOne('nobody'))
      assert.isNull(await engine.getRun('nobody'))
      assert.isUndefined(await engine.getEvent('nobody', 'key'))
      assert.deepEqual(await engine.listCheckpoints('nobody'), [])
      const error = await refused(() => engine.resume('nobody'))
      assert.equal(error.code, 'run_not_found')
      assert.equal(error.message, 'run nobody not found')
    })
  })
}
