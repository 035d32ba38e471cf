/*
 * Counters over the events of an engine, and that their text is what Prometheus reads.
 */
import { test } from '@japa/runner'
import { collectMetrics, type EngineEvent, type EngineListener } from '../../index.ts'
import { createTestEngine } from '../../src/testing/main.ts'
import { markRemote } from '../../src/wire/remote_events.ts'

/** Tells its listeners what the test says. */
function source() {
  const listeners = new Set<EngineListener>()
  return {
    subscribe(listener: EngineListener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    tell(event: Partial<EngineEvent> & Pick<EngineEvent, 'type'>, remote = false) {
      const whole: EngineEvent = { runId: 'r', at: new Date(0), ...event }
      for (const listener of listeners) listener(remote ? markRemote(whole) : whole)
    },
  }
}

interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (-?\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)$`)
const LABEL = /^([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/

/** Reads the text exposition as strictly as its specification says; throws for what it does not allow. */
function parse(text: string): { types: Map<string, string>; samples: Sample[] } {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const types = new Map<string, string>()
  const samples: Sample[] = []
  const seen = new Set<string>()
  let family = ''
  for (const line of text.slice(0, -1).split('\n')) {
    const comment = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`).exec(line)
    if (comment) {
      const [, kind, name, rest] = comment
      if (kind === 'HELP') family = name
      else if (types.has(name) || name !== family) throw new Error(`out of place: ${line}`)
      else if (!['counter', 'gauge', 'histogram'].includes(rest)) throw new Error(line)
      else types.set(name, rest)
      continue
    }
    const sample = SAMPLE.exec(line)
    if (!sample) throw new Error(`no sample: ${line}`)
    const [, name, braces = '', value] = sample
    const suffix = types.get(family) === 'histogram' ? /_(bucket|sum|count)$/ : /$^/
    if (name.replace(suffix, '') !== family) throw new Error(`not of ${family}: ${line}`)
    if (seen.has(name + braces)) throw new Error(`twice: ${line}`)
    seen.add(name + braces)
    samples.push({ name, labels: labelsOf(braces), value: Number(value) })
  }
  return { types, samples }
}

function labelsOf(braces: string): Record<string, string> {
  const labels: [string, string][] = []
  for (let rest = braces; rest !== '';) {
    const label = LABEL.exec(rest)
    if (!label) throw new Error(`wrong labels: ${braces}`)
    const value = label[2].replaceAll(/\\(.)/g, (_, one: string) => (one === 'n' ? '\n' : one))
    labels.push([label[1], value])
    rest = rest.slice(label[0].length)
  }
  return Object.fromEntries(labels)
}

const valueOf = (text: string, name: string, labels: Record<string, string> = {}): number => {
  const wanted = JSON.stringify(labels)
  const found = parse(text).samples.find(
    (one) => one.name === name && JSON.stringify(one.labels) === wanted
  )
  return found!.value
}

test.group('Metrics', () => {
  test('count the events of runs and steps, by workflow too, until they are stopped', ({
    assert,
  }) => {
    const engine = source()
    const metrics = collectMetrics(engine)
    engine.tell({ type: 'run.started', workflow: 'order' })
    engine.tell({ type: 'run.suspended', workflow: 'order' })
    engine.tell({ type: 'run.completed', workflow: 'order' })
    engine.tell({ type: 'run.failed' })
    engine.tell({ type: 'step.started' })
    engine.tell({ type: 'step.completed', durationMs: 40 })
    engine.tell({ type: 'step.failed', durationMs: 1000 })
    engine.tell({ type: 'step.progress' })
    engine.tell({ type: 'capability.unavailable' })
    metrics.stop()
    engine.tell({ type: 'run.started', workflow: 'order' })
    const { runs, steps, runsByWorkflow, stepDurationMs } = metrics.snapshot()
    assert.deepEqual(runs, { started: 1, completed: 1, failed: 1, suspended: 1 })
    assert.deepEqual(steps, { started: 1, completed: 1, failed: 1 })
    assert.deepEqual(runsByWorkflow, {
      order: { started: 1, completed: 1, failed: 0 },
      unknown: { started: 0, completed: 0, failed: 1 },
    })
    assert.equal(stepDurationMs.sum, 1040)
    assert.equal(stepDurationMs.count, 2)
    const text = metrics.prometheus()
    assert.equal(valueOf(text, 'durable_runs_total', { event: 'suspended' }), 1)
    assert.equal(valueOf(text, 'durable_steps_total', { event: 'failed' }), 1)
    const ofOrder = { workflow: 'order', event: 'completed' }
    assert.equal(valueOf(text, 'durable_runs_by_workflow_total', ofOrder), 1)
    assert.equal(valueOf(text, 'durable_step_duration_ms_sum'), 1040)
    assert.equal(valueOf(text, 'durable_step_duration_count'), 2)
  })

  test('are valid text before anything happened, and whatever a workflow is called', ({
    assert,
  }) => {
    const engine = source()
    const metrics = collectMetrics(engine)
    const { types } = parse(metrics.prometheus())
    assert.deepEqual(Object.fromEntries(types), {
      durable_runs_total: 'counter',
      durable_steps_total: 'counter',
      durable_runs_by_workflow_total: 'counter',
      durable_step_duration_ms_sum: 'counter',
      durable_step_duration_count: 'counter',
      durable_step_duration_seconds: 'histogram',
    })
    for (const workflow of ['a"b\\c\nd', '__proto__', '']) {
      engine.tell({ type: 'run.started', workflow })
      const labels = { workflow, event: 'started' }
      assert.equal(valueOf(metrics.prometheus(), 'durable_runs_by_workflow_total', labels), 1)
    }
  })

  test('durations fall into buckets that add up', ({ assert }) => {
    const engine = source()
    const metrics = collectMetrics(engine)
    for (const durationMs of [0, 5, 6, 999, 1000, 1001, 300_000, 400_000, Number.NaN]) {
      engine.tell({ type: 'step.completed', durationMs })
    }
    const text = metrics.prometheus()
    const buckets = parse(text).samples.filter(({ name }) => name.endsWith('_bucket'))
    const counts = buckets.map(({ value }) => value)
    assert.deepEqual(
      counts,
      [...counts].sort((a, b) => a - b)
    )
    const within = (le: string) => buckets.find(({ labels }) => labels.le === le)!.value
    assert.deepEqual(['0.005', '0.01', '1', '2.5', '300', '+Inf'].map(within), [2, 3, 5, 6, 7, 8])
    assert.equal(valueOf(text, 'durable_step_duration_seconds_count'), 8)
    assert.equal(valueOf(text, 'durable_step_duration_seconds_sum'), 703.011)
  })

  test('leave out what other instances did', ({ assert }) => {
    const engine = source()
    const metrics = collectMetrics(engine)
    engine.tell({ type: 'run.started' }, true)
    assert.equal(metrics.snapshot().runs.started, 0)
  })

  test('of a real engine say what happened', async ({ assert }) => {
    const { engine, run } = createTestEngine()
    const metrics = collectMetrics(engine)
    engine.register('order', '1', async (ctx) => {
      await ctx.localStep('one', async () => 1)
      await ctx.localStep('two', async () => {
        throw new Error('no')
      })
    })
    await run('order')
    const { runs, steps } = metrics.snapshot()
    assert.deepEqual(runs, { started: 1, completed: 0, failed: 1, suspended: 0 })
    assert.deepEqual(steps, { started: 2, completed: 1, failed: 1 })
  })
})
