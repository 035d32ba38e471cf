/*
 * `node ace durable:retry`: brings a run back, or runs it again with another input.
 */
import { readFile } from 'node:fs/promises'
import { args, flags } from '@adonisjs/core/ace'
import { RunCommand } from '../src/adonis/run_command.ts'
import { STORE_ROLE } from '../src/adonis/tokens.ts'
import { messageOf } from '../src/foundation/failure.ts'
import type { RunGateway } from '../src/gateway/main.ts'
import { visible } from '../src/insight/plain_text.ts'

export default class DurableRetry extends RunCommand {
  static override commandName = 'durable:retry'
  static override description = 'Bring a failed, dead or stuck durable workflow run back'
  static override help = [
    'Sets the run back to pending: what has finished keeps its result, what failed is tried again. A',
    'worker takes it with its next tick; nothing of it runs in this process.',
    '',
    'With --input a new run of the same workflow is started from the beginning instead, and the old one',
    'stays as it is. Undone steps of a failed run are not done again by a retry: use --input for those.',
    '',
    'Examples:',
    '```',
    '{{ binaryName }} durable:retry ord-77ab3012',
    `{{ binaryName }} durable:retry ord-77ab3012 --input='{"amount":249}'`,
    '{{ binaryName }} durable:retry ord-77ab3012 --input=@corrected.json',
    '```',
    '',
    'Exits with 1 for an unknown run and one that cannot be brought back, with 2 when the store does not',
    'answer.',
  ]

  @args.string({ description: 'Id of the run' })
  declare runId: string

  @flags.string({ description: 'JSON, or @file: start a new run with this input instead' })
  declare input?: string

  @flags.boolean({ description: 'Print JSON' })
  declare json?: boolean

  protected async act(): Promise<void> {
    const given =
      this.input === undefined ? undefined : { input: await this.#readInput(this.input) }
    const role = await this.app.container.make(STORE_ROLE)
    await role.leaveRunsToWorkers()
    const gateway = await this.gateway()
    await (given ? this.#again(gateway, given.input) : this.#retry(gateway))
  }

  async #retry(gateway: RunGateway): Promise<void> {
    const { runId } = this
    const result = gateway.retry
      ? await gateway.retry(runId)
      : await gateway.redispatchPending(runId)
    if (!result) return this.refuse(`there is no run ${visible(runId)}`)
    const { status } = result
    if (gateway.retry && status !== 'pending') {
      const why = status === 'running' ? 'a process executes it' : 'it stays as it is'
      return this.refuse(`run ${visible(runId)} is ${status}: ${why}`)
    }
    if (this.json) this.printJson({ runId, status })
    else this.print(`Run ${visible(runId)} re-enqueued (status: ${status}).`)
  }

  async #again(gateway: RunGateway, input: unknown): Promise<void> {
    const { runId } = this
    if (!gateway.retryWithInput) return this.tooOld('run again with another input')
    const started = await gateway.retryWithInput(runId, input).catch((error: unknown) => {
      const { code } = error as { code?: string }
      // What a validator of the application throws has no code; what a store throws has.
      if (code !== undefined && !REFUSALS.includes(code)) throw error
      return this.refuse(messageOf(error))
    })
    if (!started) return this.refuse(`there is no run ${visible(runId)}`)
    if (this.json) this.printJson(started)
    else this.print(`Run ${visible(started.runId)} started (status: pending).`)
  }

  async #readInput(given: string): Promise<unknown> {
    const from = given.startsWith('@') ? given.slice(1) : undefined
    const text =
      from === undefined
        ? given
        : await readFile(from, 'utf8').catch((error: unknown) =>
            this.refuse(`--input: ${messageOf(error)}`)
          )
    try {
      return JSON.parse(text) as unknown
    } catch (error) {
      return this.refuse(`--input${from === undefined ? '' : ` (${from})`}: ${messageOf(error)}`)
    }
  }
}

/** What a start refuses for its input or its workflow, nothing created. */
const REFUSALS = [
  'invalid_input',
  'invalid_argument',
  'workflow_not_registered',
  'concurrency_limit',
  'singleton_queue_full',
]
