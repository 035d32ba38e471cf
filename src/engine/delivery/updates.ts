/*
 * Updates: a validated payload for a run's `ctx.onUpdate`. The validator runs where the update is asked
 * for; a rejection never touches the run.
 */
import { InvalidArgumentError } from '../../errors.ts'
import { messageOf } from '../../foundation/failure.ts'
import { keyProblem } from '../../foundation/keys.ts'
import { updateToken } from '../../foundation/tokens.ts'
import type { FullStore } from '../../store/full_store.ts'
import { isTerminalStatus, type RunResult } from '../../types/run.ts'
import type { Signals } from './signals.ts'

/** Throws, or answers a reason, to reject. May be asynchronous. */
export type UpdateValidator<TArg = unknown> = (
  arg: TArg
) => void | string | undefined | Promise<void | string | undefined>

export type UpdateResult =
  /** `run` is null when the run does not wait for it yet: then it is kept for the next `onUpdate`. */
  { accepted: true; run: RunResult | null } | { accepted: false; reason: string }

export interface UpdatesOptions {
  store: Pick<FullStore, 'getRun'>
  signals: Signals
}

export class Updates {
  readonly #options: UpdatesOptions
  readonly #validators = new Map<string, UpdateValidator>()

  constructor(options: UpdatesOptions) {
    this.#options = options
  }

  /** Registers or replaces. Throws `InvalidArgumentError`. */
  register(workflow: string, name: string, validate: UpdateValidator): void {
    checkKey('registerUpdateValidator: the workflow', workflow)
    checkKey('registerUpdateValidator: the name', name)
    if (typeof validate !== 'function') {
      throw new InvalidArgumentError('registerUpdateValidator', 'takes a function')
    }
    this.#validators.set(keyOf(workflow, name), validate)
  }

  async update(runId: string, name: string, arg: unknown): Promise<UpdateResult> {
    checkKey('update: the run id', runId)
    checkKey('update: the name', name)
    const send = this.#options.signals.prepare(updateToken(runId, name), arg)
    const run = await this.#options.store.getRun(runId)
    if (!run) return { accepted: false, reason: `run ${runId} not found` }
    if (isTerminalStatus(run.status)) {
      return { accepted: false, reason: `run ${runId} is ${run.status}` }
    }
    const reason = await refusalOf(this.#validators.get(keyOf(run.workflow, name)), arg)
    return reason === undefined
      ? { accepted: true, run: await send() }
      : { accepted: false, reason }
  }
}

async function refusalOf(
  validate: UpdateValidator | undefined,
  arg: unknown
): Promise<string | undefined> {
  try {
    const reason = await validate?.(arg)
    return typeof reason === 'string' && reason !== '' ? reason : undefined
  } catch (error) {
    return messageOf(error) || 'refused'
  }
}

const keyOf = (workflow: string, name: string): string => JSON.stringify([workflow, name])

function checkKey(what: string, value: string): void {
  const problem = keyProblem(value)
  if (problem) throw new InvalidArgumentError(what, problem)
}
