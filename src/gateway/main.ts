/*
 * The door of the gateway to runs, and of what commands are built from.
 */
export { StoreRunGateway } from './run_gateway.ts'
export type {
  DurableTopology,
  RunGateway,
  RunGatewayEngine,
  StartRunOptions,
} from './run_gateway.ts'
export {
  attachLiveness,
  DEFAULT_STALE_MS,
  filterStale,
  listRuns,
  parseDurationMs,
  retryRun,
} from './run_list.ts'
export type { ListRunsOptions, RunLister, RunLiveness, TimelineReader } from './run_list.ts'
export { renderRunsTable, staleHint } from './runs_table.ts'
export type { TableOptions } from './runs_table.ts'
export { exportedHistory, historyText } from './exported_history.ts'
export type { ExportedHistory, ExportOptions } from './exported_history.ts'
