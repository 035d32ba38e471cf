/*
 * `node ace durable:export`: runs with their histories as JSON, to be kept beside the code and replayed
 * against it.
 */
import { createHash } from 'node:crypto'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { args, flags } from '@adonisjs/core/ace'
import { RunCommand } from '../src/adonis/run_command.ts'
import { messageOf } from '../src/foundation/failure.ts'
import { VERSION } from '../src/foundation/package_version.ts'
import {
  type ExportedHistory,
  exportedHistory,
  historyText,
  listRuns,
  type RunGateway,
} from '../src/gateway/main.ts'
import { visible } from '../src/insight/plain_text.ts'
import { LIVE_RUN_STATUSES, type RunStatus, TERMINAL_RUN_STATUSES } from '../src/types/run.ts'

const STATUSES: RunStatus[] = [...LIVE_RUN_STATUSES, ...TERMINAL_RUN_STATUSES]
const MOST = 1000

export default class DurableExport extends RunCommand {
  static override commandName = 'durable:export'
  static override description = 'Write durable workflow runs with their histories as JSON'
  static override help = [
    'Writes one JSON document for each run, which assertReplayable of the testing kit reads. Name runs by',
    'their ids, or select them with --workflow and --status.',
    '',
    'One run goes to stdout or to the file --out names. Several go into the folder --out names, a file',
    'each, or to stdout as one line each.',
    '',
    'Examples:',
    '```',
    '{{ binaryName }} durable:export ord-77ab3012 --out=tests/histories/checkout.json',
    '{{ binaryName }} durable:export --workflow=checkout --status=completed --limit=20 --out=tests/histories',
    '{{ binaryName }} durable:export ord-77ab3012 --children --redact',
    '```',
    '',
    'Payloads are written as they are unless --redact is given. Exits with 1 when a run is missing, after',
    'the others were written, with 2 when the store does not answer.',
  ]

  @args.spread({ description: 'Ids of runs', required: false })
  declare runIds?: string[]

  @flags.string({ description: 'File of one run, folder of several; default stdout' })
  declare out?: string

  @flags.boolean({ description: 'The runs they started as well, inside their documents' })
  declare children?: boolean

  @flags.boolean({ description: 'Replace what payloads hold; shapes and keys stay' })
  declare redact?: boolean

  @flags.string({ description: 'Runs of this workflow instead of ids' })
  declare workflow?: string

  @flags.string({ description: `Runs with this status instead of ids: ${STATUSES.join(', ')}` })
  declare status?: string

  @flags.number({ description: `How many runs to select, at most ${MOST}; default 50` })
  declare limit?: number

  protected async act(): Promise<void> {
    const gateway = await this.gateway()
    const ids = await this.#idsToExport(gateway)
    const folder = await this.#folderFor(ids)
    let missing = 0
    for (const id of ids) {
      const history = await this.#historyOf(gateway, id, new Set())
      if (history) await this.#write(history, folder, ids.length > 1)
      else {
        missing += 1
        this.note(`there is no run ${id}`)
      }
    }
    if (missing > 0) this.refuse(`${missing} of ${ids.length} runs are missing`)
  }

  async #idsToExport(gateway: RunGateway): Promise<string[]> {
    const { runIds = [], workflow } = this
    const selects = workflow !== undefined || this.status !== undefined
    if (runIds.length > 0 && selects) this.refuse('give ids, or --workflow and --status, not both')
    if (runIds.length > 0) return [...new Set(runIds)]
    if (!selects) this.refuse('name runs by their ids, or select them with --workflow or --status')
    const status =
      this.status === undefined ? undefined : this.oneOf('status', this.status, STATUSES)
    const limit = this.count('limit', this.limit, MOST)
    const runs = await listRuns(gateway, { workflow, status, limit })
    if (runs.length === 0) this.note('no run matches')
    return runs.map(({ id }) => id)
  }

  /** The folder that `--out` names, if it names one: it exists, or several runs go there. */
  async #folderFor(ids: string[]): Promise<string | undefined> {
    const { out } = this
    if (out === undefined) return undefined
    const found = await stat(this.#path(out)).catch(() => undefined)
    if (found?.isDirectory()) return out
    if (ids.length < 2) return undefined
    if (found) this.refuse(`--out=${out} is a file, and ${ids.length} runs need a folder`)
    await mkdir(this.#path(out), { recursive: true })
    return out
  }

  /** Not as a URL: a per cent sign means itself. */
  #path(file: string): string {
    return resolve(this.app.makePath(), file)
  }

  async #historyOf(
    gateway: RunGateway,
    id: string,
    seen: Set<string>
  ): Promise<ExportedHistory | undefined> {
    seen.add(id)
    const run = await gateway.getRun(id)
    if (!run) return undefined
    const options = { nowMs: Date.now(), packageVersion: VERSION, redact: this.redact }
    const history = exportedHistory(run, await gateway.getCheckpoints(id), options)
    if (!this.children) return history
    const children: ExportedHistory[] = []
    for (const child of await gateway.getRunChildren(id)) {
      const own = seen.has(child) ? undefined : await this.#historyOf(gateway, child, seen)
      if (own) children.push(own)
    }
    return children.length > 0 ? { ...history, children } : history
  }

  async #write(
    history: ExportedHistory,
    folder: string | undefined,
    several: boolean
  ): Promise<void> {
    if (this.out === undefined) return this.print(historyText(history, several).trimEnd())
    const file = folder === undefined ? this.out : join(folder, fileNameOf(String(history.run.id)))
    try {
      await mkdir(dirname(this.#path(file)), { recursive: true })
      await writeFile(this.#path(file), historyText(history))
    } catch (error) {
      this.refuse(`--out=${this.out}: ${messageOf(error)}`)
    }
    this.logger.logError(this.logger.prepareSuccess(`${visible(String(history.run.id))} → ${file}`))
  }
}

/** Longest name of a file without its suffix; systems take 255 bytes. */
const LONGEST_NAME = 200

/** One file for each id, whatever it holds and however long it is. */
function fileNameOf(runId: string): string {
  const name = encodeURIComponent(runId).replaceAll('*', '%2A')
  if (name.length <= LONGEST_NAME) return `${name}.json`
  const digest = createHash('sha256').update(runId).digest('hex')
  return `${name.slice(0, LONGEST_NAME - digest.length)}${digest}.json`
}
