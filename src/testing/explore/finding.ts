/*
 * What an exploration found, and how it reads.
 */
import type { CrashFindingKind, RunEnd } from './options.ts'

export interface CrashFinding {
  kind: CrashFindingKind
  runId: string
  /** The position in the run's history, where there is one. */
  position?: number
  message: string
  /** Lines marked ` `, `-` (the record, the first run) and `+` (the code, this run). */
  diff?: string
  /** The runs that showed it: the crash in each, or in what else it differed from the first run. */
  at: string[]
}

/** What `exploreCrashes` answers. */
export interface CrashReport {
  /** Nothing was found. */
  ok: boolean
  findings: CrashFinding[]
  /** How the run ends when nothing crashes. */
  end: RunEnd
  /** Writes of checkpoints that this takes; each is a boundary with two sides. */
  boundaries: number
  /** Crashes that were tried: two for each boundary unless limited. */
  crashes: number
  /** The findings in words, or one line that says that there are none. */
  toString(): string
}

/** Merges what is the same finding in several runs. */
export class Findings {
  readonly #byKey = new Map<string, CrashFinding>()

  get list(): CrashFinding[] {
    return [...this.#byKey.values()]
  }

  add(finding: Omit<CrashFinding, 'at'>, at: string): void {
    const { kind, runId, position, message } = finding
    // One place where code and record part, whichever of its branches was recorded.
    const what = kind === 'non_determinism' && position !== undefined ? '' : message
    const key = JSON.stringify([kind, runId, position, what])
    const known = this.#byKey.get(key)
    if (!known) this.#byKey.set(key, { ...finding, at: [at] })
    else if (!known.at.includes(at)) known.at.push(at)
  }
}

/** Runs named before the rest is counted. */
const NAMED_RUNS = 3

export function reportText(report: Omit<CrashReport, 'toString'>): string {
  const { findings, crashes, boundaries, end } = report
  const tried = `${crashes} crashes at ${boundaries} writes of run ${end.runId}`
  if (findings.length === 0) return `${tried}: it ends as ${end.status} every time.`
  const count = findings.length === 1 ? '1 finding' : `${findings.length} findings`
  return [`${tried}: ${count}.`, ...findings.map(findingText)].join('\n\n')
}

function findingText({ kind, message, diff, at }: CrashFinding, index: number): string {
  const more = at.length > NAMED_RUNS ? ` (and in ${at.length - NAMED_RUNS} other runs)` : ''
  const lines = [
    `${index + 1}. ${kind.replaceAll('_', ' ')}: ${message}`,
    ...at.slice(0, NAMED_RUNS).map((where, nr, { length }) => {
      return `   seen with ${where}${nr === length - 1 ? more : ''}`
    }),
  ]
  if (diff !== undefined) lines.push(...diff.split('\n').map((line) => `     ${line}`))
  return lines.join('\n')
}
