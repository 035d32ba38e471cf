/*
 * `node ace durable:runs`: which runs there are, and why one of them is where it is.
 */
import { args, flags } from '@adonisjs/core/ace'
import { RunCommand } from '../src/adonis/run_command.ts'
import {
  attachLiveness,
  DEFAULT_STALE_MS,
  filterStale,
  listRuns,
  parseDurationMs,
  renderRunsTable,
  type RunGateway,
  type RunLiveness,
  staleHint,
} from '../src/gateway/main.ts'
import { compactAge, plainText, visible } from '../src/insight/plain_text.ts'
import { LIVE_RUN_STATUSES, type RunStatus, TERMINAL_RUN_STATUSES } from '../src/types/run.ts'
import type { RunWaiting, WorkflowRun } from '../src/types/run.ts'

const STATUSES: RunStatus[] = [...LIVE_RUN_STATUSES, ...TERMINAL_RUN_STATUSES]
const DEFAULT_LIMIT = 50
const MOST = 1000

export default class DurableRuns extends RunCommand {
  static override commandName = 'durable:runs'
  static override description = 'List durable workflow runs, or say why one of them waits'
  static override help = [
    'Without an id, lists runs, newest first. PENDING is how long the oldest step is out, with the age',
    'of its last heartbeat. With an id, says why that run is where it is and what comes next.',
    '',
    'Examples:',
    '```',
    '{{ binaryName }} durable:runs --status=failed --workflow=checkout',
    '{{ binaryName }} durable:runs --stale=30m',
    '{{ binaryName }} durable:runs ord-77ab3012',
    '{{ binaryName }} durable:runs --json | jq .',
    '```',
    '',
    'Exits with 1 for an unknown id or a flag that cannot be used, with 2 when the store does not answer.',
  ]

  @args.string({ description: 'Explain this run instead of listing runs', required: false })
  declare runId?: string

  @flags.string({ description: `One of ${STATUSES.join(', ')}` })
  declare status?: string

  @flags.string({ description: 'Exact name of the workflow' })
  declare workflow?: string

  @flags.string({ description: 'Exact namespace' })
  declare namespace?: string

  @flags.string({ description: 'Exact tag' })
  declare tag?: string

  @flags.number({ description: `How many runs to list, at most ${MOST}; default ${DEFAULT_LIMIT}` })
  declare limit?: number

  @flags.string({
    description: 'Only runs whose step is out and silent for so long; default 15m',
    allowEmptyValue: true,
  })
  declare stale?: string

  @flags.boolean({ description: 'Print JSON' })
  declare json?: boolean

  protected async act(): Promise<void> {
    this.#checkFlags()
    const gateway = await this.gateway()
    if (this.runId !== undefined) return this.#explain(gateway, this.runId)
    const staleAfter = this.#staleAfter()
    const limit = this.count('limit', this.limit, MOST) ?? DEFAULT_LIMIT
    const runs = await listRuns(gateway, { ...this.#filter(), limit })
    const now = Date.now()
    // Whoever can answer the open rows alone is not asked for whole histories.
    const timelines = {
      listCheckpoints: (id: string) =>
        gateway.getOpenCheckpoints?.(id) ?? gateway.getCheckpoints(id),
    }
    const live = await attachLiveness(timelines, runs, now)
    const shown = this.stale === undefined ? live : filterStale(live, staleAfter)
    const waiting = (await gateway.waitingFor?.(shown.map(({ run }) => run.id))) ?? {}
    if (this.json) this.printJson(shown.map((one) => rowOf(one, waiting)))
    else this.#printTable(shown, waiting)
    if (this.stale === undefined) return
    for (const { run } of shown) this.note(staleHint(run.id))
    if (runs.length === limit) {
      this.note(`only the newest ${limit} runs were looked at: more with --limit`)
    }
  }

  #filter() {
    const { workflow, namespace, tag } = this
    const status =
      this.status === undefined ? undefined : this.oneOf('status', this.status, STATUSES)
    const statuses: RunStatus[] | undefined =
      this.stale === undefined || status !== undefined ? undefined : ['running', 'suspended']
    return { status, statuses, workflow, namespace, tag }
  }

  #staleAfter(): number {
    const { stale = '' } = this
    const ms = parseDurationMs(stale)
    if (ms !== undefined || stale === '') return ms ?? DEFAULT_STALE_MS
    return this.refuse(`--stale=${visible(stale)} is no duration such as 90s, 30m, 2h or 1d`)
  }

  /** An id and what selects others would be two commands. */
  #checkFlags(): void {
    if (this.runId === undefined) return
    const { status, workflow, namespace, tag, limit, stale } = this
    const selecting = Object.entries({ status, workflow, namespace, tag, limit, stale })
    const [given] = selecting.find(([, value]) => value !== undefined) ?? []
    if (given === undefined) return
    this.refuse(`--${given} selects runs of a list: leave it out, or the id`)
  }

  #printTable(runs: RunLiveness[], waiting: Record<string, RunWaiting>): void {
    const waits = new Map(
      Object.entries(waiting).map(([id, { on, name }]) => [
        id,
        on === 'breakpoint' || on === 'webhook' ? on : `${on} ${name}`,
      ])
    )
    const width = process.stdout.isTTY ? process.stdout.columns : undefined
    this.print(renderRunsTable(runs, { width, ...(waits.size > 0 ? { waits } : {}) }))
  }

  async #explain(gateway: RunGateway, runId: string): Promise<void> {
    const run = await gateway.getRun(runId)
    if (!run) return this.refuse(`there is no run ${visible(runId)}`)
    if (!gateway.explainRun) return this.tooOld('explain a run')
    const explanation = await gateway.explainRun(runId)
    if (!explanation) return this.refuse(`run ${visible(runId)} was deleted just now`)
    if (this.json) return this.printJson({ run: summaryOf(run), explanation })
    const now = Date.now()
    const { why, next, you } = explanation.text
    const age = compactAge(now - run.updatedAt.getTime())
    const workflow = `${run.workflow}@${run.workflowVersion}`
    this.print(`${visible(run.id)}  ${visible(workflow)}  ${run.status}, changed ${age} ago`)
    this.print(`Why   ${plainText(why, now)}`)
    this.print(`Next  ${plainText(next, now)}`)
    for (const remedy of you) this.print(`You   ${plainText(remedy, now)}`)
  }
}

/** A run without its payloads. */
function summaryOf(run: WorkflowRun) {
  const { id, workflow, workflowVersion, status, namespace, origin, createdAt, updatedAt } = run
  const tags = run.tags?.filter((tag) => !tag.startsWith('durable:')) ?? []
  const { wakeAt, recoveryAttempts = 0 } = run
  return {
    id,
    workflow,
    workflowVersion,
    status,
    namespace,
    origin,
    tags,
    createdAt,
    updatedAt,
    wakeAt,
    recoveryAttempts,
  }
}

function rowOf({ run, ageMs, stalePending }: RunLiveness, waiting: Record<string, RunWaiting>) {
  return { ...summaryOf(run), ageMs, stalePending, waiting: waiting[run.id] }
}
