import { test } from '@japa/runner'
import { z } from 'zod'
import { FatalError, SchemaValidationError } from '../../src/errors.ts'
import { runStepHandler } from '../../src/transport/run_step_handler.ts'
import { currentStep } from '../../src/transport/step_logger.ts'
import type { StepLogger } from '../../src/types/step.ts'
import type { Heartbeat, RemoteTask } from '../../src/wire/messages.ts'
import { ManualTime, settled } from './manual_time.ts'

const task = (more: Partial<RemoteTask> = {}): RemoteTask => ({
  runId: 'r',
  seq: 3,
  name: 'charge',
  stepId: 'r:3',
  group: 'charge',
  input: { amount: 1 },
  attempt: 1,
  ...more,
})

const CONTEXT_SCOPE = Symbol.for('@agora/context:scope')

test.group('runStepHandler | results', () => {
  test('what the handler returns is the output', async ({ assert }) => {
    const time = new ManualTime()
    const result = await runStepHandler(
      task(),
      async (input) => {
        await time.advance(10)
        return { echoed: input }
      },
      { clock: time.clock }
    )
    assert.deepEqual(result, {
      runId: 'r',
      seq: 3,
      stepId: 'r:3',
      status: 'completed',
      output: { echoed: { amount: 1 } },
      startedAt: 1000,
      attempt: 1,
    })
  })

  test('a name without handler fails for good, without a beat', async ({ assert }) => {
    const beats: Heartbeat[] = []
    const result = await runStepHandler(task(), undefined, {
      clock: () => 7,
      emitBeat: (beat) => beats.push(beat),
    })
    assert.deepEqual(result, {
      runId: 'r',
      seq: 3,
      stepId: 'r:3',
      status: 'failed',
      error: { message: 'no handler for charge', code: 'no_handler', retryable: false },
      startedAt: 7,
      attempt: 1,
    })
    assert.lengthOf(beats, 0)
  })

  test('{name} becomes a failure')
    .with([
      { name: 'an error', thrown: new Error('m'), expected: { message: 'm' } },
      {
        name: 'a fatal error',
        thrown: new FatalError('m', 'c', { d: 1 }),
        expected: { message: 'm', code: 'c', details: { d: 1 }, retryable: false },
      },
      {
        name: 'a schema error',
        thrown: new SchemaValidationError(
          'input',
          [{ message: 'bad', path: ['a'] }],
          'invalid_input'
        ),
        expected: {
          code: 'invalid_input',
          details: { issues: [{ message: 'bad', path: ['a'] }] },
          retryable: false,
        },
      },
      {
        name: 'an error with a code',
        thrown: Object.assign(new Error('m'), { code: 'ECONNRESET', details: { at: new Date(0) } }),
        expected: { code: 'ECONNRESET', details: { at: '1970-01-01T00:00:00.000Z' } },
      },
      { name: 'text', thrown: 'oops', expected: { message: 'oops' } },
      { name: 'nothing', thrown: undefined, expected: { message: 'undefined' } },
      {
        name: 'something that cannot be read',
        thrown: Object.defineProperty(new Error('x'), 'message', {
          get() {
            throw new Error('no message')
          },
        }),
        expected: { message: 'a value was thrown that cannot be described' },
      },
    ])
    .run(async ({ assert }, { thrown, expected }) => {
      const result = await runStepHandler(task(), () => {
        throw thrown
      })
      assert.equal(result.status, 'failed')
      assert.deepInclude(result.error as object, expected)
      if (!('retryable' in expected)) assert.notProperty(result.error, 'retryable')
    })

  test('the output is a copy, and one without JSON form fails for good', async ({ assert }) => {
    const output = { at: new Date(0), gone: undefined }
    const copied = await runStepHandler(task(), () => output)
    assert.deepEqual(copied.output, { at: '1970-01-01T00:00:00.000Z' })

    for (const bad of [1n, 'x'.repeat(200)]) {
      const { error } = await runStepHandler(task(), () => bad, { maxPayloadBytes: 100 })
      assert.deepInclude(error as object, { code: 'unstorable_value', retryable: false })
      assert.match(error!.message, /step "charge"/)
    }
  })

  test('what the handler logged comes along, also when it fails', async ({ assert }) => {
    const result = await runStepHandler(task(), (_, log) => {
      log.info('started')
      throw new Error('m')
    })
    assert.deepEqual(
      result.events?.map((event) => event.message),
      ['started']
    )
    assert.notProperty(await runStepHandler(task(), () => 1), 'events')
  })

  test('a schema library failure inside the handler is an ordinary one', async ({ assert }) => {
    const result = await runStepHandler(task(), () => z.string().parse(1))
    assert.equal(result.status, 'failed')
    assert.notProperty(result.error, 'retryable')
  })
})

test.group('runStepHandler | surroundings', () => {
  test('currentStep is the logger that the handler received', async ({ assert }) => {
    let received: StepLogger | undefined
    let ambient: StepLogger | undefined
    await runStepHandler(task(), async (_, log) => {
      received = log
      await Promise.resolve()
      ambient = currentStep()
    })
    assert.exists(received)
    assert.strictEqual(ambient, received)
    assert.isUndefined(currentStep())
  })

  test('the propagated context is opened around the handler', async ({ assert, cleanup }) => {
    const scope = globalThis as Record<symbol, unknown>
    cleanup(() => void delete scope[CONTEXT_SCOPE])
    const opened: unknown[] = []
    scope[CONTEXT_SCOPE] = (snapshot: unknown, fn: () => unknown) => {
      opened.push(snapshot)
      return fn()
    }
    const context = { tenant: 'acme' }
    const result = await runStepHandler(task({ context }), () => opened.length)
    assert.equal(result.output, 1)
    assert.deepEqual(opened, [context])

    await runStepHandler(task(), () => null)
    assert.lengthOf(opened, 1)

    scope[CONTEXT_SCOPE] = () => {
      throw new Error('no scope')
    }
    const failed = await runStepHandler(task({ context }), () => null)
    assert.equal(failed.error?.message, 'no scope')

    scope[CONTEXT_SCOPE] = 'not a function'
    const plain = await runStepHandler(task({ context }), () => 'ran')
    assert.equal(plain.output, 'ran')
  })
})

test.group('runStepHandler | beats', () => {
  test('a pickup beat before the handler, then progress', async ({ assert }) => {
    const time = new ManualTime()
    const beats: Heartbeat[] = []
    await runStepHandler(
      task(),
      (_, log) => {
        assert.deepEqual(beats, [{ runId: 'r', seq: 3, stepId: 'r:3', group: 'charge', at: 1000 }])
        time.jump(1200)
        log.heartbeat({ done: 1 })
      },
      { clock: time.clock, timers: time, emitBeat: (beat) => beats.push(beat) }
    )
    assert.deepEqual(beats[1], {
      runId: 'r',
      seq: 3,
      stepId: 'r:3',
      group: 'charge',
      at: 1200,
      progress: { done: 1 },
    })
    assert.equal(time.pending, 0)
  })

  test('beats repeat while the handler runs, with the last progress', async ({ assert }) => {
    const time = new ManualTime()
    const beats: Heartbeat[] = []
    let finish: () => void = () => {}
    const running = runStepHandler(
      task(),
      async (_, log) => {
        log.heartbeat(1)
        await new Promise<void>((resolve) => (finish = resolve))
      },
      {
        clock: time.clock,
        timers: time,
        repeatBeatMs: 5000,
        emitBeat: (beat) => beats.push(beat),
      }
    )
    await time.advance(15_000)
    assert.deepEqual(
      beats.map((beat) => [beat.at, beat.progress]),
      [
        [1000, undefined],
        [1000, 1],
        [6000, 1],
        [11_000, 1],
        [16_000, 1],
      ]
    )
    finish()
    await running
    assert.equal(time.pending, 0)
  })

  test('a beat that cannot be sent changes nothing', async ({ assert }) => {
    for (const emitBeat of [
      () => {
        throw new Error('broker down')
      },
      () => Promise.reject(new Error('broker down')),
    ]) {
      const result = await runStepHandler(task(), () => 1, { emitBeat })
      assert.equal(result.output, 1)
    }
    await settled()
  })
})
