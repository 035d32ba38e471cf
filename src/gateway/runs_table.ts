/*
 * Runs as a table of plain text.
 */
import { compactAge, visible } from '../insight/plain_text.ts'
import type { RunLiveness } from './run_list.ts'

export interface TableOptions {
  /** Columns of the terminal: ids and workflows are cut to fit. Default: nothing is cut. */
  width?: number
  /** A last column, by run id: what each waits for. */
  waits?: ReadonlyMap<string, string>
}

const GAP = '  '
/** No column that may be cut gets narrower. */
const NARROWEST = 12

/** `RUN WORKFLOW STATUS UPDATED RECOVERY PENDING`, padded; `No runs.` for none. */
export function renderRunsTable(runs: readonly RunLiveness[], options: TableOptions = {}): string {
  if (runs.length === 0) return 'No runs.'
  const { waits, width } = options
  const head = ['RUN', 'WORKFLOW', 'STATUS', 'UPDATED', 'RECOVERY', 'PENDING']
  const rows = runs.map((liveness) => cellsOf(liveness))
  if (waits) {
    head.push('WAITS FOR')
    rows.forEach((row, index) => row.push(visible(waits.get(runs[index].run.id) ?? '-')))
  }
  const lines = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...lines.map((line) => lengthOf(line[column]))))
  // What waits is the longest, ids come next; the short columns in between stay whole.
  if (width !== undefined) shrink(widths, width, waits ? [6, 1, 0] : [1, 0])
  return lines
    .map((line) =>
      line
        .map((cell, column) => fit(cell, widths[column], column === line.length - 1))
        .join(GAP)
        .trimEnd()
    )
    .join('\n')
}

function cellsOf({ run, ageMs, recoveryAttempts, stalePending }: RunLiveness): string[] {
  let pending = '-'
  if (stalePending) {
    const { ageMs: out, attempts, heartbeatAgeMs } = stalePending
    const beat = heartbeatAgeMs === null ? '' : `, hb ${compactAge(heartbeatAgeMs)}`
    pending = `${compactAge(out)} (attempt ${attempts}${beat})`
  }
  return [
    visible(run.id),
    visible(`${run.workflow}@${run.workflowVersion}`),
    run.status,
    compactAge(ageMs),
    recoveryAttempts === 0 ? '-' : String(recoveryAttempts),
    pending,
  ]
}

/** Takes what is too much from these columns, in this order. */
function shrink(widths: number[], width: number, columns: number[]): void {
  let over = widths.reduce((sum, one) => sum + one, GAP.length * (widths.length - 1)) - width
  for (const column of columns) {
    if (over <= 0) return
    const less = Math.min(over, Math.max(0, widths[column] - NARROWEST))
    widths[column] -= less
    over -= less
  }
}

const lengthOf = (text: string): number => [...text].length

function fit(text: string, width: number, last: boolean): string {
  const characters = [...text]
  if (characters.length > width) return `${characters.slice(0, width - 1).join('')}…`
  return last ? text : text + ' '.repeat(width - characters.length)
}

/** What to do about a run whose step is stale. */
export const staleHint = (runId: string): string =>
  `run ${visible(runId)} waits for a step without a sign of life: if its task is lost, ` +
  `engine.redispatchPending('${visible(runId)}') sends it again; ` +
  `node ace durable:retry ${visible(runId)} makes a worker look at the run`
