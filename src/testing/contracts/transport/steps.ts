/*
 * Steps and what comes back of them: results, failures, step events, beats. Only JSON crosses.
 */
import assert from 'node:assert/strict'
import { FatalError } from '../../../errors.ts'
import { systemClock } from '../../../foundation/clock.ts'
import { eventually } from '../transport_session.ts'
import { one, type TransportCase } from './case.ts'

export const STEP_CASES: TransportCase[] = [
  one('a dispatched step reaches its handler and its output comes back', async (session) => {
    session.serve('double', (input) => (input as number) * 2)
    const result = await session.roundTrip('double', 21)
    assert.equal(result.status, 'completed')
    assert.equal(result.output, 42)
    assert.equal(result.error, undefined)
  }),
  one('a throwing handler comes back as a failure that may be retried', async (session) => {
    session.serve('boom', () => {
      throw new Error('no luck')
    })
    const result = await session.roundTrip('boom', null)
    assert.equal(result.status, 'failed')
    assert.equal(result.error?.message, 'no luck')
    assert.notEqual(result.error?.retryable, false)
  }),
  one('a fatal failure keeps its code and details and forbids a retry', async (session) => {
    session.serve('fatal', async () => {
      throw new FatalError('declined', 'card_declined', { limit: 5 })
    })
    const { error } = await session.roundTrip('fatal', null)
    assert.equal(error?.code, 'card_declined')
    assert.equal(error?.retryable, false)
    assert.deepEqual(error?.details, { limit: 5 })
  }),
  one('registering a name again swaps its function for the next dispatch', async (session) => {
    session.serve('swap', () => 'old')
    assert.equal(await session.outputOf('swap', null), 'old')
    session.serve('swap', () => 'new')
    const task = session.task('swap', null)
    await session.transport.dispatch(task)
    const { output } = await session.resultOf(task)
    assert.equal(output, 'new')
    assert.equal(session.heard(task).length, 1)
  }),
  one('a result is not delivered before dispatch has returned', async (session) => {
    let ran = false
    session.serve('eager', () => {
      ran = true
    })
    const task = session.task('eager', null)
    const dispatching = session.transport.dispatch(task)
    assert.equal(ran, false)
    let heardTooEarly = true
    // What runs after the dispatch in the same turn of the event loop is the caller's suspension.
    await dispatching.then(() => (heardTooEarly = session.heard(task).length > 0))
    assert.equal(heardTooEarly, false)
    await session.resultOf(task)
  }),
  one('runId, seq and stepId come back as they were sent', async (session) => {
    session.serve('echo', (input) => input)
    const odd = {
      runId: `${session.prefix} ü:7 / x`,
      seq: 12,
      stepId: `${session.prefix} ü:7 / x:12`,
    }
    const result = await session.roundTrip('echo', 'é\u0000', odd)
    assert.deepEqual(
      { runId: result.runId, seq: result.seq, stepId: result.stepId, output: result.output },
      { ...odd, output: 'é\u0000' }
    )
  }),
  one('startedAt is there and not before the dispatch', async (session) => {
    session.serve('when', () => null)
    const task = session.task('when', null)
    const before = systemClock()
    await session.transport.dispatch(task)
    const { startedAt } = await session.resultOf(task)
    assert.ok(typeof startedAt === 'number' && startedAt >= before, `startedAt is ${startedAt}`)
  }),
  one(
    'step events come back in order, and no field at all when there are none',
    async (session) => {
      session.serve('chatty', (_, log) => {
        log.info('first')
        log.sub('second', 'skipped')
        log.error('third', { n: 3 })
      })
      session.serve('silent', () => null)
      const { events } = await session.roundTrip('chatty', null)
      assert.deepEqual(
        events?.map((event) => [event.level, event.name ?? event.message]),
        [
          ['info', 'first'],
          ['warn', 'second'],
          ['error', 'third'],
        ]
      )
      const quiet = await session.roundTrip('silent', null)
      assert.equal('events' in quiet, false)
    }
  ),
  one('input and output are copies with the meaning of JSON', async (session) => {
    const input = {
      at: new Date(0),
      fn: () => 1,
      none: undefined,
      list: [undefined],
      deep: { n: 1 },
    }
    let seen: unknown
    const output = { same: true, gone: () => 1 }
    session.serve('clone', (value) => {
      seen = structuredClone(value)
      ;(value as { deep: { n: number } }).deep.n = 2
      return output
    })
    const result = await session.roundTrip('clone', input)
    assert.deepEqual(seen, { at: '1970-01-01T00:00:00.000Z', list: [null], deep: { n: 1 } })
    assert.equal(input.deep.n, 1)
    assert.deepEqual(result.output, { same: true })
    assert.notEqual(result.output, output)
  }),
  one('a cyclic input rejects at dispatch', async (session) => {
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    session.serve('cyclic', () => null)
    await assert.rejects(async () => session.transport.dispatch(session.task('cyclic', cyclic)))
  }),
  one('an output without JSON form is a failure that forbids a retry', async (session) => {
    session.serve('bigint', () => 1n)
    const result = await session.roundTrip('bigint', null)
    assert.equal(result.status, 'failed')
    assert.equal(result.error?.retryable, false)
    assert.match(String(result.error?.message), /bigint/)
  }),
  one('a pickup beat arrives before the handler ends, then its progress', async (session) => {
    let finish: () => void = () => {}
    const finished = new Promise<void>((resolve) => (finish = resolve))
    session.serve('slow', async (_, log) => {
      log.heartbeat({ n: 1 })
      await finished
    })
    const task = session.task('slow', null)
    const beats = () => session.beats.filter((beat) => beat.stepId === task.stepId)
    await session.transport.dispatch(task)
    await eventually('a beat with progress', () => beats().some((beat) => beat.progress))
    assert.equal(session.heard(task).length, 0)
    assert.deepEqual(beats()[0].progress, undefined)
    assert.deepEqual(beats()[1].progress, { n: 1 })
    assert.deepEqual(
      beats().map(({ runId, seq, group }) => ({ runId, seq, group })),
      beats().map(() => ({ runId: task.runId, seq: task.seq, group: task.group }))
    )
    finish()
    await session.resultOf(task)
  }),
  one(
    'a run id of any form comes back as it was sent, and no two are taken for one',
    async (session) => {
      session.serve('id', (input) => input)
      const long = `${session.prefix}:`.padEnd(255, 'x')
      const forms = [
        ...['1', '42:7:', ':', 'a', 'A', 'a ', 'á', 'ß', 'ss', '日本☕', '%_\\', "o'x", '{}'],
      ].map((form) => `${form}${session.prefix}${form}`)
      const digits = String(systemClock()).padEnd(20, '7')
      const tasks = [...forms, digits, long].map((runId, seq) =>
        session.task('id', `for ${runId}`, { runId, seq, stepId: `${runId}:${seq % 2}` })
      )
      for (const task of tasks) await session.transport.dispatch(task)
      for (const task of tasks) {
        const { runId, seq, output } = await session.resultOf(task)
        assert.deepEqual(
          { runId, seq, output },
          { runId: task.runId, seq: task.seq, output: task.input }
        )
        assert.equal(session.heard(task).length, 1)
      }
    }
  ),
  one(
    'the attempt comes back, and the context of the dispatch is around the handler',
    async (session) => {
      const scope = Symbol.for('@agora/context:scope')
      const owner = globalThis as { [scope]?: (context: unknown, fn: () => unknown) => unknown }
      const before = owner[scope]
      let opened: unknown
      owner[scope] = (context, fn) => {
        opened = context
        return fn()
      }
      try {
        session.serve('within', () => structuredClone(opened))
        const context = { tenant: 'ü', deep: { list: [1, null] } }
        const result = await session.roundTrip('within', null, { context, attempt: 3 })
        assert.deepEqual(result.output, context)
        assert.equal(result.attempt, 3)
      } finally {
        owner[scope] = before
      }
    }
  ),
  one('a megabyte of input and output crosses whole', async (session) => {
    const text = 'ü☕x'.repeat(170_000)
    session.serve('large', (input) => ({ length: (input as string).length, input }))
    const output = (await session.outputOf('large', text)) as { length: number; input: string }
    assert.equal(output.length, text.length)
    assert.ok(output.input === text)
  }),
]
