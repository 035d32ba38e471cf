/*
 * What is said of a run that an engine left in each kind of wait: the sentences, word by word, with ages
 * as of the clock of the test. Every code of an explanation has its sentence here or in
 * tests/insight/explain.spec.ts.
 */
import { test } from '@japa/runner'
import { plainText } from '../../src/insight/plain_text.ts'
import type { RunExplanation } from '../../src/types/explanation.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { storesUnderTest, useWorld, type World } from '../helpers/engines.ts'

const MINUTE = 60_000

interface Told {
  code: string
  why: string
  next: string
  you?: string[]
}

interface Case {
  title: string
  body: (ctx: WorkflowCtx) => Promise<unknown>
  told: Told
}

const EVERYTHING_ELSE = 'It goes on when this arrives, however long that takes.'

const WAITS: Case[] = [
  {
    title: 'a sleep',
    body: (ctx) => ctx.sleep('1h'),
    told: {
      code: 'sleep',
      why: 'Sleeps until 2030-01-15 09:30:00Z (in 59m).',
      next: 'It wakes by itself at 2030-01-15 09:30:00Z (in 59m).',
    },
  },
  {
    title: 'a signal',
    body: (ctx) => ctx.waitForSignal('approve'),
    told: {
      code: 'signal',
      why: 'Waits for signal approve, for 1m, without a time limit.',
      next: EVERYTHING_ELSE,
      you: ['Deliver it: engine.signal("approve", …)'],
    },
  },
  {
    title: 'a signal with a time limit',
    body: (ctx) => ctx.waitForSignal('approve', { timeoutMs: 5 * MINUTE }),
    told: {
      code: 'signal',
      why: 'Waits for signal approve, for 1m, gives up at 2030-01-15 08:35:00Z (in 4m).',
      next: 'It goes on when this arrives, or without it at 2030-01-15 08:35:00Z (in 4m).',
      you: ['Deliver it: engine.signal("approve", …)'],
    },
  },
  {
    title: 'an event with a time limit',
    body: (ctx) => ctx.waitForEvent('order paid', { match: { id: 1 }, timeoutMs: 2 * MINUTE }),
    told: {
      code: 'event',
      why: 'Waits for event order paid, for 1m, gives up at 2030-01-15 08:32:00Z (in 1m).',
      next: 'It goes on when this arrives, or without it at 2030-01-15 08:32:00Z (in 1m).',
      you: ['Publish it: engine.publishEvent("order paid", …)'],
    },
  },
  {
    title: 'an update',
    body: (ctx) => ctx.onUpdate('address'),
    told: {
      code: 'update',
      why: 'Waits for update address, for 1m, without a time limit.',
      next: EVERYTHING_ELSE,
      you: ['Send it: engine.update("r", "address", …)'],
    },
  },
  {
    title: 'a webhook with a time limit',
    body: (ctx) => ctx.webhook().wait({ timeoutMs: 61_000 }),
    told: {
      code: 'webhook',
      why: 'Waits for a call of webhook wh:r:0, for 1m, gives up at 2030-01-15 08:31:01Z (in 1s).',
      next: 'It goes on when this arrives, or without it at 2030-01-15 08:31:01Z (in 1s).',
      you: ['Deliver it: engine.signal("wh:r:0", …)'],
    },
  },
  {
    title: 'a task',
    body: (ctx) => ctx.task('print', async () => {}),
    told: {
      code: 'task',
      why: 'Waits for the outcome of task print, for 1m, without a time limit.',
      next: EVERYTHING_ELSE,
      you: ['Report its outcome: engine.completeTask("r", "print", …)'],
    },
  },
  {
    title: 'a breakpoint',
    body: (ctx) => ctx.breakpoint('before the transfer'),
    told: {
      code: 'breakpoint',
      why: 'Stands at breakpoint before the transfer, for 1m.',
      next: EVERYTHING_ELSE,
      you: ['Let it go on: engine.continue("r")'],
    },
  },
  {
    title: 'an entity',
    body: (ctx) => ctx.callEntity('account', '7', 'close'),
    told: {
      code: 'entity',
      why: 'Waits for the answer of an entity, for 1m.',
      next: EVERYTHING_ELSE,
    },
  },
  {
    title: 'a step that is out',
    body: (ctx) => ctx.step('charge', null),
    told: {
      code: 'step_out',
      why: 'charge was handed to charge 1m ago. What works on it is not reported.',
      next: 'It goes on when the result is there.',
    },
  },
  {
    title: 'a fan over a step',
    body: (ctx) => Promise.all([ctx.step('a', 1), ctx.step('b', 2)]),
    told: {
      code: 'step_out',
      why:
        'b was handed to b 1m ago. What works on it is not reported. ' +
        'One more wait beside it: a out for 1m.',
      next: 'It goes on when the result is there.',
    },
  },
  {
    title: 'a child that waits in turn',
    body: (ctx) => ctx.child('waits', null, 'c'),
    told: {
      code: 'child',
      why:
        'Waits for child c (waits@1). That one: ' +
        'Waits for signal approve, for 1m, without a time limit.',
      next: `${EVERYTHING_ELSE} This run follows when the child has ended.`,
    },
  },
  {
    title: 'a fan of children in waves',
    body: (ctx) => ctx.all('naps', [1, 2, 3, 4, 5], { concurrency: 4 }),
    told: {
      code: 'fan_open',
      why:
        '4 of 5 children are out; 0 ended well, 0 failed, 1 not started. One of them: ' +
        'Waits for child r.all.0.w0.0 (naps@1). That one: ' +
        'Sleeps until 2030-01-15 09:30:00Z (in 59m).',
      next: 'It goes on when all of them have ended.',
    },
  },
  {
    title: 'several things at once',
    body: (ctx) => Promise.race([ctx.waitForSignal('approve'), ctx.sleep('2h'), ctx.step('a', 1)]),
    told: {
      code: 'step_out',
      why:
        'a was handed to a 1m ago. What works on it is not reported. 2 more waits beside it: ' +
        'until 2030-01-15 10:30:00Z (in 1h59m); signal approve.',
      next: 'It goes on when the result is there.',
    },
  },
]

function inWords(world: World, explanation: RunExplanation | null): Told {
  const { code, text } = explanation!
  const words = (sentence: RunExplanation['text']['why']) => plainText(sentence, world.time.now)
  const told: Told = { code, why: words(text.why), next: words(text.next) }
  if (text.you.length > 0) told.you = text.you.map(words)
  return told
}

function register(engine: WorkflowEngine): void {
  engine.register('waits', '1', (ctx) => ctx.waitForSignal('approve'))
  engine.register('naps', '1', (ctx) => ctx.sleep('1h'))
  engine.registerEntity('account', {
    initialState: () => 0,
    handlers: { close: () => new Promise<never>(() => {}) },
  })
}

const kinds = await storesUnderTest()
for (const kind of kinds.filter(({ name }) => name === 'in memory' || name === 'Lucid on sqlite')) {
  test.group(`explanations | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    for (const { title, body, told } of WAITS) {
      test(`of ${title}`, async ({ assert }) => {
        const engine = world.engine({ transport: 'held' })
        register(engine)
        engine.register('order', '1', body)
        await engine.start('order', null, 'r')
        await world.parked('r')
        await world.time.advance(MINUTE)
        assert.deepEqual(inWords(world, await engine.explainRun('r')), told)
      })
    }
  })
}

test.group('explanations of what is no wait', (group) => {
  const world = useWorld(group, kinds[0])

  test('of an unknown run there is none', async ({ assert }) => {
    assert.isNull(await world.engine().explainRun('nobody'))
  })

  test('a run whose token another one waits for by now', async ({ assert }) => {
    const engine = world.engine()
    register(engine)
    for (const id of ['first', 'second']) {
      await engine.start('waits', null, id)
      await world.parked(id)
    }
    assert.deepEqual(inWords(world, await engine.explainRun('first')), {
      code: 'outside',
      why:
        'Waits for 0s for something that is not recorded here: work outside its workflow context, ' +
        'a slot of a queue that another process asks for, ' +
        'or a token that another run waits for by now.',
      next: 'It is looked at again at 2030-01-15 08:35:00Z (in 5m).',
    })
    assert.equal((await engine.explainRun('second'))!.code, 'signal')
  })

  test('a run that is not begun yet, and one that nobody takes', async ({ assert }) => {
    const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
    register(engine)
    await engine.start('waits', null, 'later', { startAt: world.time.now + 3 * MINUTE })
    await engine.start('waits', null, 'now')
    assert.deepEqual(inWords(world, await engine.explainRun('later')), {
      code: 'delayed_start',
      why: 'Starts at 2030-01-15 08:33:00Z (in 3m).',
      next: 'It starts by itself at 2030-01-15 08:33:00Z (in 3m).',
    })
    assert.equal((await engine.explainRun('now'))!.code, 'pending_queued')
    await world.time.advance(5 * MINUTE)
    assert.deepEqual(inWords(world, await engine.explainRun('now')), {
      code: 'pending_undriven',
      why: 'Nothing has picked this run up for 5m.',
      next: 'Nothing happens by itself.',
      you: ['Start a worker: node ace durable:work'],
    })
    assert.deepEqual(inWords(world, await engine.explainRun('later')), {
      code: 'due',
      why: 'Is due for 2m and was not picked up yet.',
      next: 'Nothing happens by itself.',
      you: ['Start a worker: node ace durable:work'],
    })
  })

  test('a run that waits its turn behind another of its key', async ({ assert }) => {
    const engine = world.engine()
    const singleton = { key: () => 'store:A' }
    engine.register('sync', '1', (ctx) => ctx.waitForSignal('done'), { singleton })
    for (const id of ['a', 'b', 'c']) {
      await engine.start('sync', null, id)
      await world.parked(id)
      await world.time.advance(10)
    }
    assert.deepEqual(inWords(world, await engine.explainRun('c')), {
      code: 'singleton_queued',
      why: 'Waits its turn for key store:A: place 2; a is inside.',
      next: 'It goes on when a run of its key ends and nobody is before it.',
    })
    assert.equal((await engine.explainRun('a'))!.code, 'signal')
  })

  test('a step that waits for a slot of its queue', async ({ assert }) => {
    const engine = world.engine({ transport: 'held' })
    engine.registerQueue({ name: 'mail', concurrency: 1 })
    engine.register('order', '1', (ctx) => ctx.step('send', null, { queue: 'mail' }))
    for (const id of ['first', 'second']) {
      await engine.start('order', null, id)
      await world.parked(id)
    }
    assert.deepEqual(inWords(world, await engine.explainRun('second')), {
      code: 'slot_wait',
      why: 'A step waits for a free slot of queue mail.',
      next: 'It goes on when a slot is free; it asks again at 2030-01-15 08:30:01Z (in 1s).',
    })
    assert.equal((await engine.explainRun('first'))!.code, 'step_out')
  })

  test('a body that executes, and one whose process is gone', async ({ assert }) => {
    const engine = world.engine({ maxRecoveryAttempts: 3 })
    engine.register('busy', '1', (ctx) => ctx.localStep('crunch', () => new Promise(() => {})))
    await engine.start('busy', null, 'r')
    await world.reached('r', 'running')
    await world.quiet()
    assert.equal((await engine.explainRun('r'))!.code, 'running')
    await world.crash(engine)
    await world.time.advance(2 * MINUTE)
    const other = world.engine({ maxRecoveryAttempts: 3 })
    assert.deepEqual(inWords(world, await other.explainRun('r')), {
      code: 'lease_expired',
      why: 'The process that executed it stopped reporting 1m30s ago.',
      next: 'A worker takes it over with its next tick.',
      you: ['Start a worker: node ace durable:work'],
    })
  })

  test('ends: what failed where, what was undone, who deals with it', async ({ assert }) => {
    const engine = world.engine()
    engine.register('help', '1', async () => 1)
    engine.register(
      'order',
      '1',
      async (ctx) => {
        await ctx.localStep('reserve', () => 1, { compensate: async () => {} })
        await ctx.localStep('charge', () => {
          throw Object.assign(new Error('declined'), { code: 'card_declined' })
        })
      },
      { onError: [{ workflow: 'help' }] }
    )
    await engine.start('order', null, 'r')
    await world.ended('onerror:r')
    await world.time.advance(MINUTE)
    assert.deepEqual(inWords(world, await engine.explainRun('r')), {
      code: 'failed',
      why:
        'Failed 1m ago in charge: card_declined: declined. 1 step was undone. ' +
        'It was handed to onerror:r.',
      next: 'Nothing happens by itself.',
      you: [`Run it again from the beginning: node ace durable:retry r --input='…'`],
    })
  })

  test('a cancelled run, a run that went on under another id, and one that is done', async ({
    assert,
  }) => {
    const engine = world.engine()
    register(engine)
    engine.register('loop', '1', async (ctx, input) => {
      if (input === 2) return 'done'
      return ctx.continueAsNew(2)
    })
    await engine.start('waits', null, 'c')
    await world.parked('c')
    await engine.cancel('c', { by: 'ada' })
    await engine.start('loop', 1, 'l')
    await world.ended('l~1')
    await world.time.advance(MINUTE)
    const why = async (id: string) => inWords(world, await engine.explainRun(id)).why
    assert.equal(await why('c'), 'Cancelled by ada 1m ago.')
    assert.equal(await why('l'), 'Continued as l~1 1m ago.')
    assert.equal(await why('l~1'), 'Completed 1m ago.')
  })
})
