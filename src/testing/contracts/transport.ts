/*
 * What every transport does, as a table without a test runner: each case is a sentence and a function
 * that throws when the sentence does not hold. `assertTransportConformance` runs the cases that one
 * instance can show by itself. Waits are bounded polls; nothing here measures time.
 */
import assert from 'node:assert/strict'
import { systemClock } from '../../foundation/clock.ts'
import { FatalError } from '../../errors.ts'
import type { Transport } from '../../transport/ports.ts'
import { routingToken } from '../../wire/names.ts'
import { TransportSession, eventually, quietly } from './transport_session.ts'

export { TransportSession } from './transport_session.ts'

/** Opens transports on the private backend of one case. */
export interface TransportBench {
  session(config?: { namespace?: string; deferred?: boolean }): Promise<TransportSession>
}

export interface TransportCase {
  title: string
  /** `one`: any used instance shows it. `fresh`: needs its own. `shared`: several on one backend. */
  needs: 'one' | 'fresh' | 'shared'
  run(bench: TransportBench): Promise<void>
}

const one = (title: string, run: (session: TransportSession) => Promise<void>): TransportCase => ({
  title,
  needs: 'one',
  run: async (bench) => run(await bench.session()),
})
const fresh = (title: string, run: TransportCase['run']): TransportCase => ({
  title,
  needs: 'fresh',
  run,
})
const shared = (title: string, run: TransportCase['run']): TransportCase => ({
  title,
  needs: 'shared',
  run,
})

const ROUND_TRIPS: TransportCase[] = [
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
]

const JSON_ONLY: TransportCase[] = [
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
]

const BEATS: TransportCase[] = [
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
]

const ROUTING: TransportCase[] = [
  one("two names never receive each other's tasks", async (session) => {
    session.serve('pair:one', () => 1)
    session.serve('pair.two', () => 2)
    session.serve('pair-one', () => 3)
    for (const [name, output] of [
      ['pair:one', 1],
      ['pair.two', 2],
    ] as const) {
      assert.equal(await session.outputOf(name, null), output)
    }
  }),
  one('a name of spaces, digits and other scripts is served', async (session) => {
    for (const name of ['12345', 'with space', 'größe/☕', 'a:b:c']) {
      session.serve(name, () => name)
      assert.equal(await session.outputOf(name, null), name)
    }
  }),
  one('a partition serves its own tasks and no others', async (session) => {
    session.serve('pooled', () => 'a', 'a')
    session.serve('pooled', () => 'b', 'b')
    session.serve('pooled', () => 'bare', 'default')
    for (const [partition, output] of [
      ['a', 'a'],
      ['b', 'b'],
      [undefined, 'bare'],
    ] as const) {
      const group = routingToken('pooled', partition)
      assert.equal(await session.outputOf('pooled', null, { group }), output)
    }
  }),
  one('a name nobody serves is refused for good, or stays silent', async (session) => {
    const unknown = session.task('nobody-serves-this', null)
    await session.transport.dispatch(unknown)
    session.serve('somebody', () => null)
    await session.roundTrip('somebody', null)
    const [answer] = session.heard(unknown)
    if (!answer) return
    assert.equal(answer.status, 'failed')
    assert.equal(answer.error?.retryable, false)
    assert.match(String(answer.error?.message), /^no handler for nobody-serves-this$/)
  }),
  shared('two workers on one name process each task once', async (bench) => {
    const engine = await bench.session()
    const workers = [await bench.session(), await bench.session()]
    const runs: unknown[] = []
    for (const worker of workers) worker.serve('shared', (input) => runs.push(input))
    const tasks = Array.from({ length: 8 }, (_, index) => engine.task('shared', index))
    for (const task of tasks) await engine.transport.dispatch(task)
    for (const task of tasks) await engine.resultOf(task)
    assert.deepEqual(
      [...runs].sort(),
      tasks.map((task) => task.input)
    )
  }),
  shared('namespaces on one backend never meet', async (bench) => {
    const [x, y] = [
      await bench.session({ namespace: 'x' }),
      await bench.session({ namespace: 'y' }),
    ]
    x.serve('which', () => 'x')
    y.serve('which', () => 'y')
    assert.equal(await x.outputOf('which', null), 'x')
    assert.equal(await y.outputOf('which', null), 'y')
    assert.equal(x.results.length, 1)
    assert.equal(y.beats.length, 1)
  }),
  shared('the default namespace is the unset one, an explicit one stays', async (bench) => {
    const unset = await bench.session()
    const named = await bench.session({ namespace: 'default' })
    const explicit = await bench.session({ namespace: 'x' })
    explicit.transport.useNamespace?.('default')
    explicit.serve('where', () => 'x')
    named.serve('where', () => 'default')
    assert.equal(await unset.outputOf('where', null), 'default')
    assert.equal(await explicit.outputOf('where', null), 'x')
  }),
]

const DELIVERY: TransportCase[] = [
  one('a result that its handler refused comes again', async (session) => {
    session.serve('again', () => 7)
    const task = session.task('again', null)
    session.refusals.set(task.stepId, 2)
    await session.transport.dispatch(task)
    await eventually('the third delivery', () => session.heard(task).length === 3)
    assert.deepEqual(
      session.heard(task).map((result) => result.output),
      [7, 7, 7]
    )
  }),
  fresh('failures of result and heartbeat handlers are reported', async (bench) => {
    const session = await bench.session()
    session.serve('reported', () => null)
    const task = session.task('reported', null)
    session.refusals.set(task.stepId, 1)
    session.refuseBeats = true
    await session.transport.dispatch(task)
    await eventually('the second delivery', () => session.heard(task).length === 2)
    const messages = session.errors.map((error) => (error as Error).message)
    assert.ok(messages.includes('refused'), messages.join(', '))
    assert.ok(messages.includes('refused beat'), messages.join(', '))
  }),
  fresh('deferred consumers claim nothing, then take what piled up', async (bench) => {
    const session = await bench.session({ deferred: true })
    let runs = 0
    session.serve('parked', () => ++runs)
    const task = session.task('parked', null)
    await session.transport.dispatch(task)
    await quietly()
    assert.equal(runs, 0)
    session.transport.startConsumers?.()
    const { output } = await session.resultOf(task)
    assert.equal(output, 1)
    session.serve('later', () => 'at once')
    assert.equal(await session.outputOf('later', null), 'at once')
  }),
  fresh('close twice is fine, and nothing is consumed afterwards', async (bench) => {
    const session = await bench.session()
    let finish: () => void = () => {}
    session.serve('endless', () => new Promise<void>((resolve) => (finish = resolve)))
    const task = session.task('endless', null)
    await session.transport.dispatch(task)
    await eventually('the pickup', () => session.beats.length > 0)
    await session.transport.close?.()
    await session.transport.close?.()
    finish()
    await quietly()
    assert.equal(session.results.length, 0)
  }),
]

/** Every case; a driver runs those that it can be shown to need. */
export const transportCases: readonly TransportCase[] = [
  ...ROUND_TRIPS,
  ...JSON_ONLY,
  ...BEATS,
  ...ROUTING,
  ...DELIVERY,
]

/**
 * Runs the cases that one instance can show by itself, over a transport that both dispatches and serves,
 * then closes it. Throws on the first one that does not hold, with its title. Ids start with `idPrefix`.
 */
export async function assertTransportConformance(
  transport: Transport,
  idPrefix = 'conf'
): Promise<void> {
  const session = new TransportSession(transport, idPrefix).listen()
  try {
    for (const { title, needs, run } of transportCases) {
      if (needs !== 'one') continue
      await run({ session: () => Promise.resolve(session) }).catch((cause: unknown) => {
        throw new Error(`transport conformance: ${title}: ${(cause as Error).message}`, { cause })
      })
    }
  } finally {
    await transport.close?.()
  }
}
