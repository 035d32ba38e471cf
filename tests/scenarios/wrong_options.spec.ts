/*
 * Options that are none, or misspelt: refused with the option that is wrong, the same in every replay, and
 * nothing is left half-written.
 */
import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../index.ts'
import { BaseWorkflow, defineStep } from '../../index.ts'
import { registerOptionsOf, workflowMeta } from '../../src/authoring/workflow_ref.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

/** A context as code without types sees it. */
type Loose = Record<keyof WorkflowCtx, (...args: unknown[]) => Promise<unknown>>

const ref = defineStep('s', async () => 1)

/** The call, and how its error begins. */
const CALLS: [string, (ctx: Loose) => Promise<unknown>, string][] = [
  [
    'step null',
    (ctx) => ctx.step(ref, 1, null),
    'ctx.step("s"): the options must be an object, got null',
  ],
  [
    'step number',
    (ctx) => ctx.step('s', 1, 7),
    'ctx.step("s"): the options must be an object, got number',
  ],
  [
    'step key',
    (ctx) => ctx.step('s', 1, { retrys: 3 }),
    'ctx.step("s"): option "retrys" is unknown. Did you mean "retries"? There are retries, backoff,',
  ],
  [
    'step backoff',
    (ctx) => ctx.step('s', 1, { backoff: 'exponential' }),
    `ctx.step("s"): backoff must be 'fixed' or 'exp'`,
  ],
  [
    'step jitter',
    (ctx) => ctx.step('s', 1, { jitter: 'yes' }),
    'ctx.step("s"): jitter must be true or false',
  ],
  [
    'step transport',
    (ctx) => ctx.step('s', 1, { transport: 7 }),
    'ctx.step("s"): transport must be a string',
  ],
  [
    'local null',
    (ctx) => ctx.localStep('s', () => 1, null),
    'ctx.localStep("s"): the options must be an object, got null',
  ],
  [
    'local key',
    (ctx) => ctx.localStep('s', () => 1, { timeout: 5 }),
    'ctx.localStep("s"): option "timeout" is unknown. Did you mean "timeoutMs"?',
  ],
  [
    'local body',
    (ctx) => ctx.localStep('s', { retries: 1 }),
    'ctx.localStep("s") takes the function that does the work',
  ],
  [
    'local undo',
    (ctx) => ctx.localStep('s', () => 1, { compensate: 'undo' }),
    'ctx.localStep("s"): compensate must be a function',
  ],
  [
    'task',
    (ctx) => ctx.task('t', async () => {}, []),
    'ctx.task("t"): the options must be an object, got a list',
  ],
  [
    'signal',
    (ctx) => ctx.waitForSignal('t', 5000),
    'ctx.waitForSignal: the options must be an object, got number; there are timeoutMs',
  ],
  [
    'signal key',
    (ctx) => ctx.waitForSignal('t', { timeout: 1 }),
    'ctx.waitForSignal: option "timeout" is unknown',
  ],
  [
    'event',
    (ctx) => ctx.waitForEvent('e', null),
    'ctx.waitForEvent: the options must be an object, got null',
  ],
  [
    'event key',
    (ctx) => ctx.waitForEvent('e', { matches: {} }),
    'ctx.waitForEvent: option "matches" is unknown. Did you mean "match"?',
  ],
  [
    'update',
    (ctx) => ctx.onUpdate('u', 7),
    'ctx.onUpdate: the options must be an object, got number',
  ],
  ['child', (ctx) => ctx.child('c', 1, { id: 'x' }), 'ctx.child: option "id" is unknown'],
  [
    'child priority',
    (ctx) => ctx.child('c', 1, { priority: 1.5 }),
    'ctx.child: priority must be an integer of at most 32 bits',
  ],
  [
    'spawn',
    (ctx) => ctx.startChild('c', 1, { childID: 'x' }),
    'ctx.startChild: option "childID" is unknown. Did you mean "childId"?',
  ],
  [
    'all null',
    (ctx) => ctx.all('c', [1], null),
    'ctx.all: the options must be an object, got null',
  ],
  [
    'all key',
    (ctx) => ctx.all('c', [1], { retries: 3 }),
    'ctx.all: option "retries" is unknown. There are mode, concurrency',
  ],
  [
    'all step key',
    (ctx) => ctx.all(ref, [1], { retrys: 3 }),
    'ctx.all: option "retrys" is unknown',
  ],
  [
    'all step backoff',
    (ctx) => ctx.all(ref, [1], { backoffMs: -1 }),
    'ctx.all over step "s": backoffMs must be 0 or more',
  ],
  [
    'settled null',
    (ctx) => ctx.allSettled('c', [1], null),
    'ctx.allSettled: the options must be an object, got null',
  ],
]

for (const kind of await storesUnderTest()) {
  test.group(`Wrong options | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('of a ctx call fail it before it takes a position, in every replay', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, name: string) => {
        const [, call] = CALLS.find(([one]) => one === name)!
        const caught = async () => {
          try {
            await call(ctx as never)
          } catch (error) {
            return error as Error & { code: string }
          }
          return undefined
        }
        const first = await caught()
        await ctx.sleep(1)
        const second = await caught()
        return {
          message: first?.message,
          code: first?.code,
          same: first?.message === second?.message,
        }
      })
      for (const [name] of CALLS) await engine.start('w', name, name)
      await world.quiet()
      await world.time.advance(1)
      await engine.resumeDueTimers()
      for (const [name, , message] of CALLS) {
        const run = await world.ended(name)
        const output = run.output as { message: string; code: string; same: boolean }
        assert.include(output.message, message, name)
        assert.equal(output.code, 'invalid_argument', name)
        assert.isTrue(output.same, name)
        const rows = await world.rows(name)
        assert.deepEqual(
          rows.map((row) => row.name),
          ['sleep'],
          name
        )
      }
    })

    test('a body that lets it out fails once, and for good', async ({ assert }) => {
      const engine = world.engine()
      let bodies = 0
      engine.register('w', '1', (ctx) => {
        bodies += 1
        return ctx.step('s', 1, { retrys: 3 } as never)
      })
      await engine.start('w', null, 'r')
      const run = await world.ended('r')
      assert.equal(run.status, 'failed')
      assert.equal(run.error?.code, 'invalid_argument')
      assert.isEmpty(await world.rows('r'))
      assert.equal(bodies, 1)
    })

    test('of a start create no run', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 1)
      const wrong: [unknown, string][] = [
        [null, 'start: the options must be an object, got null'],
        ['v2', 'start: the options must be an object, got string'],
        [
          { tag: ['a'] },
          'start: option "tag" is unknown. Did you mean "tags"? There are version, tags,',
        ],
        [
          { concurrency: { key: 'k', limit: 1, countStatus: [] } },
          'start: concurrency: option "countStatus" is unknown',
        ],
        [
          { concurrency: { key: 'k', limit: 1, countStatuses: [] } },
          'start: concurrency: countStatuses must name a status',
        ],
      ]
      for (const [options, message] of wrong) {
        await assert.rejects(
          () => engine.start('w', 1, 'r', options as never),
          new RegExp(escaped(message))
        )
      }
      assert.isNull(await engine.getRun('r'))
      // What is undefined says nothing.
      await engine.start('w', 1, 'r', { later: undefined } as never)
      assert.isNotNull(await engine.getRun('r'))
    })
  })
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

const [memory] = await storesUnderTest()
test.group('Wrong options | verbs', (group) => {
  const world = useWorld(group, memory)

  test('of a registration are refused by name', ({ assert }) => {
    const engine = world.engine()
    const key = () => 'k'
    const wrong: [unknown, string][] = [
      [null, 'register: workflow "w": the options must be an object, got null'],
      [
        { executionTimout: 1 },
        'register: workflow "w": option "executionTimout" is unknown. Did you mean "executionTimeout"?',
      ],
      [{ onEvent: 7 }, 'register: onEvent of workflow "w" must be a list of event names'],
      [{ onEvent: 'paid' }, 'register: onEvent of workflow "w" must be a list of event names'],
      [{ validateInput: 7 }, 'register: validateInput of workflow "w" must be a function'],
      [{ origin: 7 }, 'register: the origin of workflow "w" must be a string, got number'],
      [
        { singleton: 7 },
        'register: singleton of workflow "w": the options must be an object, got number',
      ],
      [
        { singleton: { key, maxDepth: 1 } },
        'register: singleton of workflow "w": option "maxDepth" is unknown',
      ],
      [
        { concurrency: { key, limits: 1 } },
        'register: concurrency of workflow "w": option "limits" is unknown. Did you mean "limit"?',
      ],
      [
        { concurrency: { key, limit: 1, countStatuses: [] } },
        'register: concurrency of workflow "w": countStatuses must name a status',
      ],
      [
        { eventBatch: { mode: 'batch', windowMs: 1, size: 2 } },
        'register: eventBatch of workflow "w": option "size" is unknown',
      ],
    ]
    for (const [options, message] of wrong) {
      assert.throws(
        () => engine.register('w', '1', async () => 1, options as never),
        new RegExp(escaped(message))
      )
    }
  })

  test('of a class and of a declared step as well', async ({ assert }) => {
    class Order extends BaseWorkflow {
      static override workflow = { name: 'order', timeout: '1h' }
      async run() {}
    }
    const meta = workflowMeta(Order)!
    assert.throws(
      () => registerOptionsOf(meta),
      /static workflow of "order": option "timeout" is unknown/
    )
    assert.throws(
      () => defineStep('s', async () => 1, { retrys: 1 } as never),
      /step "s": option "retrys" is unknown/
    )
    await assert.rejects(
      () => Order.start(undefined, { runID: 'x' } as never),
      /start: option "runID" is unknown. Did you mean "runId"/
    )
    await assert.rejects(
      () => Order.dispatch(undefined, null as never),
      /start: the options must be an object, got null/
    )
  })

  test('what is no interceptor and no list of ids is refused', async ({ assert }) => {
    const engine = world.engine()
    assert.throws(
      () => engine.use(7 as never),
      'use: the interceptor must be a function, got number'
    )
    await assert.rejects(
      () => engine.waitingFor(7 as never),
      'waitingFor: the run ids must be a list'
    )
    await assert.rejects(
      () => engine.waitingFor('run' as never),
      'waitingFor: the run ids must be a list'
    )
  })

  test('an object that is more than options is taken as it is', async ({ assert }) => {
    class Policy {
      retries = 2
      get label() {
        return 'a policy'
      }
      comment = 'kept with it'
    }
    const engine = world.engine()
    engine.handle('s', () => 1)
    engine.register('w', '1', (ctx) => ctx.step('s', 1, new Policy()))
    await engine.start('w', null, 'r')
    const run = await world.ended('r')
    assert.equal(run.output, 1)
  })
})
