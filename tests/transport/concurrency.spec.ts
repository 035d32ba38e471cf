import { test } from '@japa/runner'
import {
  ConcurrencyController,
  type Adjustment,
  type LimitState,
  type LoadSample,
  decide,
} from '../../src/transport/concurrency.ts'
import {
  type ConcurrencySettings,
  readConcurrency,
  readResultConcurrency,
} from '../../src/transport/concurrency_options.ts'
import { type Host, thisHost } from '../../src/transport/host_load.ts'
import { ManualTime } from './manual_time.ts'

const state = (over: Partial<LimitState> = {}): LimitState => ({
  limit: 10,
  min: 1,
  max: 32,
  ramCeilingPct: 85,
  ...over,
})

const sample = (over: Partial<LoadSample> = {}): LoadSample => ({
  inFlight: 0,
  errorRate: 0,
  stalled: false,
  gradient: 1,
  ...over,
})

class FakeHost implements Host {
  rss = 10
  limit = 100
  cpu = 0
  rssBytes = () => this.rss
  memoryLimitBytes = () => this.limit
  cpuMs = () => this.cpu
  cores = () => 4
}

const setup = (concurrency: ConstructorParameters<typeof ConcurrencyController>[0] = {}) => {
  const time = new ManualTime()
  const host = new FakeHost()
  const controller = new ConcurrencyController({ clock: time.clock, host, ...concurrency })
  const changes: Adjustment[] = []
  controller.onChange((_, adjustment) => void changes.push(adjustment))
  controller.start(time)
  const complete = (durationMs: number, ok = true) => {
    controller.started()
    controller.finished({ ok, durationMs, isStep: true })
  }
  return { time, host, controller, changes, complete }
}

test.group('concurrency: the decision', () => {
  test('{title}')
    .with([
      ['memory at its ceiling takes a fifth', { rssPct: 85 }, 8, 'ram_ceiling'],
      ['memory below its ceiling takes nothing', { rssPct: 84.9 }, 10, undefined],
      ['errors above a fifth take one', { errorRate: 0.21 }, 9, 'backpressure'],
      ['a fifth of errors takes nothing', { errorRate: 0.2 }, 10, undefined],
      ['a standstill takes one', { stalled: true }, 9, 'backpressure'],
      ['slower steps take their share', { gradient: 0.69 }, 6, 'shrink'],
      ['slightly slower steps take nothing', { gradient: 0.7, inFlight: 10 }, 10, undefined],
      ['steady steps that fill the limit add one', { gradient: 0.9, inFlight: 8 }, 11, 'grow'],
      ['steps not steady enough add nothing', { gradient: 0.89, inFlight: 10 }, 10, undefined],
      ['a limit that is not filled adds nothing', { inFlight: 7 }, 10, undefined],
      ['the CPU is free without a ceiling', { cpuPct: 100 }, 10, undefined],
    ] as [string, Partial<LoadSample>, number, Adjustment['reason'] | undefined][])
    .run(({ assert }, [, load, limit, reason]) => {
      const decision = decide(state(), sample(load))
      assert.deepEqual(decision, reason ? { limit, reason } : { limit })
    })

  test('the CPU at its ceiling takes one', ({ assert }) => {
    const capped = state({ cpuCeilingPct: 90 })
    assert.deepEqual(decide(capped, sample({ cpuPct: 90 })), { limit: 9, reason: 'cpu_ceiling' })
    assert.deepEqual(decide(capped, sample({ cpuPct: 89.9 })), { limit: 10 })
  })

  test('the first rule that matches decides', ({ assert }) => {
    const all = { rssPct: 99, cpuPct: 99, errorRate: 1, stalled: true, gradient: 0.1 }
    const capped = state({ cpuCeilingPct: 50 })
    const reasons = ['rssPct', 'cpuPct', 'errorRate', 'stalled', 'gradient'].map(
      (_, first, keys) => {
        const load = Object.fromEntries(
          Object.entries(all).filter(([key]) => keys.indexOf(key) >= first)
        )
        return decide(capped, sample(load)).reason
      }
    )
    assert.deepEqual(reasons, [
      'ram_ceiling',
      'cpu_ceiling',
      'backpressure',
      'backpressure',
      'shrink',
    ])
    // Also when it cannot change anything.
    const bottom = state({ limit: 1 })
    assert.deepEqual(decide(bottom, sample({ rssPct: 99, inFlight: 9 })), { limit: 1 })
  })

  test('the limit stays between min and max', ({ assert }) => {
    assert.deepEqual(decide(state({ limit: 5, min: 5 }), sample({ errorRate: 1 })), { limit: 5 })
    assert.deepEqual(decide(state({ limit: 6, min: 5 }), sample({ rssPct: 90 })), {
      limit: 5,
      reason: 'ram_ceiling',
    })
    assert.deepEqual(decide(state({ limit: 32 }), sample({ inFlight: 32 })), { limit: 32 })
  })
})

test.group('concurrency: the option', () => {
  test('a number is fixed; nothing is 1', ({ assert }) => {
    assert.deepEqual(readConcurrency(undefined), { mode: 'fixed', limit: 1 })
    assert.deepEqual(readConcurrency(8), { mode: 'fixed', limit: 8 })
    assert.equal(readResultConcurrency(undefined, 'resultConcurrency'), 1)
    assert.equal(readResultConcurrency(4, 'resultConcurrency'), 4)
  })

  test('what is no concurrency is refused by name', ({ assert }) => {
    for (const wrong of [
      0,
      -1,
      1.5,
      Number.NaN,
      Infinity,
      '8',
      'auto',
      null,
      [],
      { mode: 'fixed' },
    ]) {
      assert.throws(
        () => readConcurrency(wrong as never, 'transports.db: concurrency'),
        /^transports\.db: concurrency must be a whole number of at least 1/
      )
    }
    assert.throws(() => readResultConcurrency(0, 'resultConcurrency'), /^resultConcurrency must be/)
    assert.throws(
      () => readConcurrency({ mode: 'adaptive', max: '9' as never }),
      'concurrency.max must be a number'
    )
  })

  const DEFAULTS: ConcurrencySettings = {
    mode: 'adaptive',
    min: 1,
    max: 32,
    start: 1,
    tickMs: 2000,
    ramCeilingPct: 85,
  }

  test('adaptive has defaults', ({ assert }) => {
    assert.deepEqual(readConcurrency('adaptive'), DEFAULTS)
    assert.deepEqual(readConcurrency({ mode: 'adaptive' }), DEFAULTS)
  })

  test('a field that is out of range falls back alone')
    .with([
      [{ min: 0 }, {}],
      [{ min: Number.NaN }, {}],
      [{ max: Infinity }, {}],
      [
        { min: 4, max: 2 },
        { min: 4, start: 4 },
      ],
      [
        { min: 40, max: 2 },
        { min: 40, max: 40, start: 40 },
      ],
      [{ max: 0 }, {}],
      [
        { max: 8, start: 9 },
        { max: 8, start: 8 },
      ],
      [
        { min: 4, start: 2 },
        { min: 4, start: 4 },
      ],
      [{ start: 6.7 }, { start: 6 }],
      [{ tickMs: 0 }, {}],
      [{ tickMs: 500, ramCeilingPct: 0 }, { tickMs: 500 }],
      [{ ramCeilingPct: 101 }, {}],
      [{ ramCeilingPct: 100 }, { ramCeilingPct: 100 }],
      [{ cpuCeilingPct: -1, max: 4 }, { max: 4 }],
      [{ cpuCeilingPct: 75 }, { cpuCeilingPct: 75 }],
    ])
    .run(({ assert }, [given, differs]) => {
      assert.deepEqual(readConcurrency({ mode: 'adaptive', ...given }), {
        ...DEFAULTS,
        ...differs,
      })
    })
})

test.group('concurrency: the controller', () => {
  test('a fixed limit never moves and sets no timer', async ({ assert }) => {
    const { time, host, controller, changes, complete } = setup({ concurrency: 3 })
    host.rss = 99
    complete(5, false)
    await time.advance(60_000)
    assert.equal(time.pending, 0)
    assert.equal(controller.limit, 3)
    assert.deepEqual(changes, [])
    assert.deepEqual(controller.status().concurrency, { mode: 'fixed', limit: 3 })
  })

  test('it grows by one each tick while steady steps fill it', async ({ assert }) => {
    const { time, controller, changes, complete } = setup({ concurrency: 'adaptive' })
    const began = time.clock()
    for (let tick = 0; tick < 3; tick++) {
      while (controller.inFlight < controller.limit) controller.started()
      complete(10)
      await time.advance(2000)
    }
    assert.equal(controller.limit, 4)
    assert.deepEqual(changes[0], { at: began + 2000, from: 1, to: 2, reason: 'grow' })
    assert.deepEqual(controller.status().lastAdjust, changes.at(-1))
    assert.deepEqual(controller.status().concurrency, {
      mode: 'adaptive',
      limit: 4,
      min: 1,
      max: 32,
    })
  })

  test('steps that get slower than their shortest shrink it', async ({ assert }) => {
    const concurrency = { mode: 'adaptive', start: 20, tickMs: 1000 } as const
    const { time, controller, complete } = setup({ concurrency })
    for (const durationMs of [10, 20, 20]) complete(durationMs)
    await time.advance(1000)
    assert.equal(controller.limit, 10)
    assert.equal(controller.status().lastAdjust?.reason, 'shrink')
  })

  test('a shortest step that falls moves the yardstick by a fifth', async ({ assert }) => {
    const concurrency = { mode: 'adaptive', start: 20, tickMs: 1000 } as const
    const { time, controller, complete } = setup({ concurrency })
    for (let i = 0; i < 9; i++) complete(100)
    await time.advance(1000)
    complete(50)
    // 0.8 × 100 + 0.2 × 50 = 90 over a median of 100: steady enough.
    for (let i = 0; i < 20; i++) controller.started()
    await time.advance(1000)
    assert.equal(controller.limit, 21)
  })

  test('steps that fail early do not count as fast ones', async ({ assert }) => {
    const concurrency = { mode: 'adaptive', start: 10, tickMs: 1000 } as const
    const { time, controller, complete } = setup({ concurrency })
    complete(1, false)
    for (let i = 0; i < 9; i++) complete(100)
    await time.advance(1000)
    assert.equal(controller.limit, 10)
  })

  test('a tick too short to measure is no slowdown', async ({ assert }) => {
    const { time, controller, complete } = setup({ concurrency: { mode: 'adaptive', start: 10 } })
    for (const durationMs of [0, 1, 1]) complete(durationMs)
    await time.advance(2000)
    assert.equal(controller.limit, 10)
  })

  test('two ticks without a completion are a standstill', async ({ assert }) => {
    const concurrency = { mode: 'adaptive', start: 10, tickMs: 1000 } as const
    const { time, controller } = setup({ concurrency })
    await time.advance(900)
    controller.started()
    await time.advance(1900)
    assert.equal(controller.limit, 10)
    await time.advance(200)
    assert.equal(controller.limit, 9)
    controller.finished({ ok: false, durationMs: 2000, isStep: false })
    await time.advance(10_000)
    assert.equal(controller.limit, 9)
  })

  test('a turn is work in flight and progress, but no step', async ({ assert }) => {
    const concurrency = { mode: 'adaptive', start: 1, tickMs: 1000 } as const
    const { time, controller } = setup({ concurrency })
    controller.started()
    controller.started()
    controller.finished({ ok: false, durationMs: 60_000, isStep: false })
    assert.equal(controller.inFlight, 1)
    await time.advance(1000)
    assert.equal(controller.limit, 2)
    const { throughputPerMin, p95Ms } = controller.status()
    assert.deepEqual([throughputPerMin, p95Ms], [0, undefined])
    controller.abandoned()
    assert.equal(controller.inFlight, 0)
  })

  test('only the last hundred steps count', async ({ assert }) => {
    const concurrency = { mode: 'adaptive', start: 10, tickMs: 1000 } as const
    const { time, controller, complete } = setup({ concurrency })
    for (let i = 0; i < 100; i++) complete(5, false)
    for (let i = 0; i < 80; i++) complete(5)
    await time.advance(1000)
    assert.equal(controller.limit, 10)
  })

  test('memory and CPU ceilings are sampled at each tick', async ({ assert }) => {
    const concurrency = { mode: 'adaptive', start: 10, cpuCeilingPct: 50 } as const
    const { time, host, controller, changes } = setup({ concurrency })
    host.cpu += 4000
    await time.advance(2000)
    host.cpu += 3999
    await time.advance(2000)
    host.rss = 85
    await time.advance(2000)
    assert.deepEqual(
      changes.map(({ to, reason }) => [to, reason]),
      [
        [9, 'cpu_ceiling'],
        [8, 'cpu_ceiling'],
        [6, 'ram_ceiling'],
      ]
    )
    assert.equal(controller.limit, 6)
  })

  test('throughput covers the trailing minute', async ({ assert }) => {
    const { time, controller, complete } = setup()
    for (let i = 0; i < 150; i++) complete(5)
    assert.equal(controller.status().throughputPerMin, 150)
    await time.advance(30_000)
    complete(5)
    assert.equal(controller.status().throughputPerMin, 151)
    await time.advance(30_000)
    assert.equal(controller.status().throughputPerMin, 1)
    await time.advance(30_000)
    assert.equal(controller.status().throughputPerMin, 0)
  })

  test('a fixed controller reports its load, the CPU at most every 2 s', async ({ assert }) => {
    const { time, host, controller, complete } = setup({ concurrency: 2 })
    for (let durationMs = 1; durationMs <= 100; durationMs++) complete(durationMs)
    controller.started()
    assert.deepEqual(controller.status(), {
      runtime: 'node',
      concurrency: { mode: 'fixed', limit: 2 },
      inFlight: 1,
      rssBytes: 10,
      rssLimitBytes: 100,
      rssPct: 10,
      throughputPerMin: 100,
      p95Ms: 95,
    })
    host.cpu = 1000
    await time.advance(1999)
    assert.isUndefined(controller.status().cpuPct)
    await time.advance(1)
    assert.equal(controller.status().cpuPct, 12.5)
    host.cpu = 9000
    await time.advance(1000)
    assert.equal(controller.status().cpuPct, 12.5)
  })

  test('stop ends it, a second start changes nothing, a listener that throws harms nobody', async ({
    assert,
  }) => {
    const { time, host, controller, changes } = setup({
      concurrency: { mode: 'adaptive', start: 10 },
    })
    controller.start(time)
    assert.equal(time.pending, 1)
    host.rss = 90
    const detach = controller.onChange(() => {
      throw new Error('a listener broke')
    })
    const later: number[] = []
    controller.onChange((limit) => void later.push(limit))
    await time.advance(2000)
    assert.deepEqual(later, [8])
    detach()
    controller.stop()
    controller.stop()
    await time.advance(10_000)
    assert.equal(changes.length, 1)
    assert.equal(time.pending, 0)
  })

  test('this host answers', ({ assert }) => {
    assert.isAbove(thisHost.rssBytes(), 1_000_000)
    assert.isAbove(thisHost.memoryLimitBytes(), thisHost.rssBytes())
    assert.isAbove(thisHost.cpuMs(), 0)
    assert.isAtLeast(thisHost.cores(), 1)
  })
})
