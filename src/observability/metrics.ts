/*
 * Counters over the events of one engine, without a dependency, as Prometheus reads them. They count what
 * this process did: events of other instances are theirs to count.
 */
import type { EngineEvent, EngineListener } from '../types/engine_event.ts'
import { isRemoteEvent } from '../wire/remote_events.ts'

/** Anything that tells of the events of an engine. */
export interface DurableEventSource {
  subscribe(listener: EngineListener): () => void
}

export type RunEventName = 'started' | 'completed' | 'failed' | 'suspended'
export type StepEventName = 'started' | 'completed' | 'failed'

/** What was counted so far. Durations in ms. */
export interface MetricsSnapshot {
  runs: Record<RunEventName, number>
  steps: Record<StepEventName, number>
  /** By workflow; suspensions are not told apart. */
  runsByWorkflow: Record<string, Record<Exclude<RunEventName, 'suspended'>, number>>
  stepDurationMs: {
    sum: number
    count: number
    /** Steps that took at most so many seconds, by that number. */
    buckets: Record<string, number>
  }
}

export interface MetricsCollector {
  /** The text exposition, format 0.0.4; ends in a line end. */
  prometheus(): string
  snapshot(): MetricsSnapshot
  /** Stops counting; what was counted stays. */
  stop(): void
}

const RUN_EVENTS: RunEventName[] = ['started', 'completed', 'failed', 'suspended']
const STEP_EVENTS: StepEventName[] = ['started', 'completed', 'failed']
const OF_WORKFLOW = ['started', 'completed', 'failed'] as const
/** Upper bounds in seconds. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const UNNAMED = 'unknown'

/** Counts the events of an engine from now on. */
export function collectMetrics(engine: DurableEventSource): MetricsCollector {
  const counters = new Counters()
  const stop = engine.subscribe((event) => {
    if (!isRemoteEvent(event)) counters.add(event)
  })
  return {
    prometheus: () => exposition(counters.snapshot()),
    snapshot: () => counters.snapshot(),
    stop,
  }
}

const zeros = <Name extends string>(names: readonly Name[]): Record<Name, number> =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>

class Counters {
  readonly #runs = zeros(RUN_EVENTS)
  readonly #steps = zeros(STEP_EVENTS)
  readonly #byWorkflow = new Map<string, Record<(typeof OF_WORKFLOW)[number], number>>()
  readonly #buckets = BUCKETS.map(() => 0)
  #sum = 0
  #count = 0

  add(event: EngineEvent): void {
    const [subject, name] = event.type.split('.')
    if (subject === 'run') this.#addRun(event, name as RunEventName)
    else if (subject === 'step' && name in this.#steps) this.#addStep(event, name as StepEventName)
  }

  #addRun({ workflow = UNNAMED }: EngineEvent, name: RunEventName): void {
    this.#runs[name] += 1
    if (name === 'suspended') return
    let own = this.#byWorkflow.get(workflow)
    if (!own) this.#byWorkflow.set(workflow, (own = zeros(OF_WORKFLOW)))
    own[name] += 1
  }

  #addStep({ durationMs }: EngineEvent, name: StepEventName): void {
    this.#steps[name] += 1
    if (name === 'started' || durationMs === undefined || !(durationMs >= 0)) return
    this.#sum += durationMs
    this.#count += 1
    const within = BUCKETS.findIndex((bound) => durationMs <= bound * 1000)
    if (within >= 0) this.#buckets[within] += 1
  }

  snapshot(): MetricsSnapshot {
    let below = 0
    const buckets = BUCKETS.map((bound, index) => [bound, (below += this.#buckets[index])])
    const byWorkflow = [...this.#byWorkflow].map(([workflow, own]) => [workflow, { ...own }])
    return {
      runs: { ...this.#runs },
      steps: { ...this.#steps },
      runsByWorkflow: Object.fromEntries(byWorkflow),
      stepDurationMs: {
        sum: this.#sum,
        count: this.#count,
        buckets: Object.fromEntries(buckets),
      },
    }
  }
}

function exposition({ runs, steps, runsByWorkflow, stepDurationMs }: MetricsSnapshot): string {
  const { sum, count, buckets } = stepDurationMs
  const ofWorkflows = Object.entries(runsByWorkflow).flatMap(([workflow, own]) =>
    OF_WORKFLOW.map((event): Sample => [{ workflow, event }, own[event]])
  )
  // Bounds are numbers as keys: an object would put whole ones first.
  const within = BUCKETS.map((bound): Sample => [{ le: String(bound) }, buckets[bound]])
  return [
    ...family('durable_runs_total', 'counter', 'Events of runs in this process.', [
      ...RUN_EVENTS.map((event): Sample => [{ event }, runs[event]]),
    ]),
    ...family('durable_steps_total', 'counter', 'Events of steps in this process.', [
      ...STEP_EVENTS.map((event): Sample => [{ event }, steps[event]]),
    ]),
    ...family(
      'durable_runs_by_workflow_total',
      'counter',
      'Events of runs by workflow.',
      ofWorkflows
    ),
    ...family('durable_step_duration_ms_sum', 'counter', 'Time that steps took, in milliseconds.', [
      [{}, sum],
    ]),
    ...family('durable_step_duration_count', 'counter', 'Steps that took this time.', [
      [{}, count],
    ]),
    ...family('durable_step_duration_seconds', 'histogram', 'How long steps took.', [
      ...within.map(([labels, value]): Sample => [labels, value, '_bucket']),
      [{ le: '+Inf' }, count, '_bucket'],
      [{}, sum / 1000, '_sum'],
      [{}, count, '_count'],
    ]),
    '',
  ].join('\n')
}

type Sample = [labels: Record<string, string>, value: number, suffix?: string]

function family(name: string, type: string, help: string, samples: Sample[]): string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(
      ([labels, value, suffix = '']) => `${name}${suffix}${inBraces(labels)} ${value}`
    ),
  ]
}

function inBraces(labels: Record<string, string>): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${escaped(value)}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

const escaped = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
