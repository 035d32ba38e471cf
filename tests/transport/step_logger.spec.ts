import { test } from '@japa/runner'
import {
  RecordingStepLogger,
  currentStep,
  runWithStepLogger,
} from '../../src/transport/step_logger.ts'
import type { StepEvent } from '../../src/types/step.ts'
import { ManualTime } from './manual_time.ts'

function setup() {
  const time = new ManualTime()
  const beats: unknown[] = []
  const logger = new RecordingStepLogger({
    clock: time.clock,
    timers: time,
    beat: (progress) => beats.push(progress),
  })
  return { time, beats, logger, events: (): StepEvent[] => logger.finish() ?? [] }
}

test.group('step logger | lines', () => {
  test('one method per level, with the time of the clock and data as it was', ({ assert }) => {
    const { logger, time, events } = setup()
    const data = { rows: 1 }
    logger.debug('a', data)
    data.rows = 2
    time.jump(1500)
    logger.info('b')
    logger.warn('c')
    logger.error('d', new Error('inner'))
    const recorded = events()
    assert.deepEqual(
      recorded.map(({ at, level, message }) => [at, level, message]),
      [
        [1000, 'debug', 'a'],
        [1500, 'info', 'b'],
        [1500, 'warn', 'c'],
        [1500, 'error', 'd'],
      ]
    )
    assert.deepEqual(recorded[0].data, { rows: 1 })
    assert.deepInclude(recorded[3].data as object, { message: 'inner' })
    assert.deepEqual(Object.keys(recorded[1]), ['at', 'level', 'message'])
  })

  test('data without a JSON form is described, not thrown', ({ assert }) => {
    const { logger, events } = setup()
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    logger.info('odd', cyclic)
    logger.info('big', 1n)
    for (const event of events()) assert.match(String(event.data), /^\[not JSON: /)
  })

  test('sub records an outcome at the level of its status', ({ assert }) => {
    const { logger, events } = setup()
    logger.sub('load', 'ok')
    logger.sub('parse', 'skipped', 'nothing to do', { n: 0 })
    logger.sub('save', 'failed')
    assert.deepEqual(events(), [
      { at: 1000, level: 'info', message: 'load: ok', name: 'load', status: 'ok' },
      {
        at: 1000,
        level: 'warn',
        message: 'nothing to do',
        name: 'parse',
        status: 'skipped',
        data: { n: 0 },
      },
      { at: 1000, level: 'error', message: 'save: failed', name: 'save', status: 'failed' },
    ])
  })

  test('nothing recorded is undefined, and nothing is recorded afterwards', ({ assert }) => {
    const { logger } = setup()
    assert.isUndefined(logger.finish())
    const other = setup()
    other.logger.info('in time')
    const events = other.logger.finish()
    other.logger.info('too late')
    assert.lengthOf(events!, 1)
  })

  test('methods work without their object', ({ assert }) => {
    const { logger, events } = setup()
    const { info, sub } = logger
    info('x')
    sub('y', 'ok')
    assert.lengthOf(events(), 2)
  })
})

test.group('step logger | sub-processes', () => {
  test('a body that returns ends it once, with its duration', async ({ assert }) => {
    const { logger, time, events } = setup()
    const value = await logger.subProcess(
      'import',
      async (sp) => {
        logger.info('inside')
        sp.phase('reading')
        await time.advance(40)
        return 7
      },
      { id: 'p1', group: 'files' }
    )
    assert.equal(value, 7)
    assert.deepEqual(events(), [
      { at: 1000, level: 'info', message: 'inside', subId: 'p1', name: 'import', group: 'files' },
      {
        at: 1000,
        level: 'info',
        message: 'import: reading',
        subId: 'p1',
        name: 'import',
        group: 'files',
        phase: 'reading',
      },
      {
        at: 1040,
        level: 'info',
        message: 'import: ok',
        subId: 'p1',
        name: 'import',
        group: 'files',
        status: 'ok',
        data: { durationMs: 40 },
      },
    ])
  })

  test('a body that throws ends it as failed and throws on', async ({ assert }) => {
    const { logger, events } = setup()
    await assert.rejects(
      () =>
        logger.subProcess('load', () => {
          throw new Error('gone')
        }),
      'gone'
    )
    const [event, ...others] = events()
    assert.lengthOf(others, 0)
    assert.deepInclude(event, { level: 'error', status: 'failed', message: 'gone', name: 'load' })
    assert.match(event.subId!, /^[0-9a-f-]{36}$/)
  })

  test('skip and fail end it; whatever ends it later is ignored', async ({ assert }) => {
    const { logger, events } = setup()
    await logger.subProcess('a', (sp) => {
      sp.skip('empty')
      sp.fail('too late')
    })
    await assert.rejects(() =>
      logger.subProcess('b', (sp) => {
        sp.fail('bad input')
        throw new Error('after the end')
      })
    )
    assert.deepEqual(
      events().map(({ name, status, message, level }) => [name, status, message, level]),
      [
        ['a', 'skipped', 'empty', 'warn'],
        ['b', 'failed', 'bad input', 'error'],
      ]
    )
  })

  test('a duration that the caller measured wins', async ({ assert }) => {
    const { logger, events } = setup()
    await logger.subProcess(
      'a',
      () =>
        logger.subEvent({
          id: 'x',
          name: 'a',
          status: 'ok',
          data: { durationMs: 3, rows: 2 },
        }),
      { id: 'x' }
    )
    assert.deepEqual(
      events().map((event) => event.data),
      [{ durationMs: 3, rows: 2 }]
    )
  })

  test('parallel and nested ones keep their own lines', async ({ assert }) => {
    const { logger, events } = setup()
    const one = (id: string) =>
      logger.subProcess(
        id,
        async () => {
          await Promise.resolve()
          logger.info(`in ${id}`)
          await logger.subProcess(`${id}.inner`, () => logger.info(`inner of ${id}`), {
            id: `${id}.inner`,
          })
          await Promise.resolve()
          logger.info(`back in ${id}`)
        },
        { id }
      )
    await Promise.all([one('a'), one('b')])
    logger.info('outside')
    for (const { message, subId, status } of events()) {
      if (status) continue
      const id = message.split(' ').at(-1)!
      const expected = message.startsWith('inner') ? `${id}.inner` : id
      assert.equal(subId, message === 'outside' ? undefined : expected, message)
    }
  })

  test('an event of its own is recorded as it is', ({ assert }) => {
    const { logger, events } = setup()
    logger.subEvent({ id: 'q', name: 'queue', group: 'g', phase: 'waiting' })
    logger.subEvent({ id: 'q', name: 'queue', status: 'failed', message: 'full', data: [1] })
    assert.deepEqual(events(), [
      {
        at: 1000,
        level: 'info',
        message: 'queue: waiting',
        subId: 'q',
        name: 'queue',
        group: 'g',
        phase: 'waiting',
      },
      {
        at: 1000,
        level: 'error',
        message: 'full',
        subId: 'q',
        name: 'queue',
        status: 'failed',
        data: [1],
      },
    ])
  })
})

test.group('step logger | heartbeats', () => {
  test('the first goes at once, then one per 5 s with the freshest progress', async ({
    assert,
  }) => {
    const { logger, time, beats } = setup()
    logger.heartbeat(1)
    logger.heartbeat(2)
    logger.heartbeat(3)
    logger.heartbeat()
    assert.deepEqual(beats, [1])
    await time.advance(4999)
    assert.deepEqual(beats, [1])
    await time.advance(1)
    assert.deepEqual(beats, [1, 3])
    await time.advance(20_000)
    assert.deepEqual(beats, [1, 3])
    logger.heartbeat(4)
    assert.deepEqual(beats, [1, 3, 4])
  })

  test('a beat that waits dies with the step', async ({ assert }) => {
    const { logger, time, beats } = setup()
    logger.heartbeat(1)
    logger.heartbeat(2)
    logger.finish()
    logger.heartbeat(3)
    logger.repeatBeat()
    assert.equal(time.pending, 0)
    await time.advance(10_000)
    assert.deepEqual(beats, [1])
  })

  test('a clock that is set back does not silence the step', ({ assert }) => {
    const { logger, time, beats } = setup()
    time.jump(1_000_000)
    logger.heartbeat(1)
    time.jump(1000)
    logger.heartbeat(2)
    assert.deepEqual(beats, [1, 2])
  })

  test('without a beat to send it does nothing', ({ assert }) => {
    const time = new ManualTime()
    const logger = new RecordingStepLogger({ clock: time.clock, timers: time })
    logger.heartbeat(1)
    logger.heartbeat(2)
    assert.equal(time.pending, 0)
    assert.isUndefined(logger.finish())
  })
})

test.group('step logger | currentStep', () => {
  test('is the very instance, on every path below, and undefined outside', async ({ assert }) => {
    const { logger } = setup()
    assert.isUndefined(currentStep())
    const seen = await runWithStepLogger(logger, async () => {
      await Promise.resolve()
      return currentStep()
    })
    assert.strictEqual(seen, logger)
    assert.isUndefined(currentStep())
  })

  test('another copy of the package finds the same step', async ({ assert }) => {
    const { logger } = setup()
    const url = new URL('../../src/transport/step_logger.ts?copy', import.meta.url).href
    const copy = (await import(url)) as typeof import('../../src/transport/step_logger.ts')
    assert.notStrictEqual(copy.currentStep, currentStep)
    assert.strictEqual(
      runWithStepLogger(logger, () => copy.currentStep()),
      logger
    )
  })
})
