/*
 * The door of what observes an engine from outside. It subscribes; the core never calls it.
 */
export { attachDurableDiagnostics } from './diagnostics.ts'
export type { DurableDiagnostic } from './diagnostics.ts'
export { collectMetrics } from './metrics.ts'
export type {
  DurableEventSource,
  MetricsCollector,
  MetricsSnapshot,
  RunEventName,
  StepEventName,
} from './metrics.ts'
