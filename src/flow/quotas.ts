/*
 * Concurrency quotas: how many runs of a key may be in flight when another one starts, across workflows.
 * Decided at the start and nowhere else; nothing is held or queued. Specified in
 * docs/reliability/singletons.md.
 */
import { checkOptions, OPTIONS } from '../authoring/options.ts'
import { ConcurrencyLimitError, InvalidArgumentError } from '../errors.ts'
import { tagKeyProblem } from '../foundation/keys.ts'
import type { FullStore } from '../store/full_store.ts'
import { LIVE_RUN_STATUSES, type RunStatus, TERMINAL_RUN_STATUSES } from '../types/run.ts'
import type { ConcurrencyConfig, ConcurrencyQuota } from '../types/workflow.ts'

const QUOTA_TAG = 'concurrency:'

const STATUSES: readonly RunStatus[] = [...LIVE_RUN_STATUSES, ...TERMINAL_RUN_STATUSES]

export interface QuotasOptions {
  store: Pick<FullStore, 'countRuns'>
}

export class Quotas {
  readonly #options: QuotasOptions

  constructor(options: QuotasOptions) {
    this.#options = options
  }

  /**
   * The tag by which a new run counts; undefined where no quota applies. Throws `ConcurrencyLimitError`
   * at the limit: a count, so simultaneous starts may overshoot by their number.
   */
  async tagOf(
    workflow: string,
    config: ConcurrencyConfig | ConcurrencyQuota | undefined,
    input: unknown
  ): Promise<string | undefined> {
    const key: unknown = typeof config?.key === 'function' ? config.key(input) : config?.key
    if (!config || key === undefined) return undefined
    const what = `start: the concurrency key of workflow "${workflow}"`
    if (typeof key !== 'string') throw new InvalidArgumentError(what, 'must be a string')
    const tag = QUOTA_TAG + key
    const problem = tagKeyProblem(QUOTA_TAG, key)
    if (problem) throw new InvalidArgumentError(what, problem)
    const limit = typeof config.limit === 'function' ? await config.limit(key) : config.limit
    checkLimit(`start: the concurrency limit of workflow "${workflow}"`, limit)
    const statuses = [...(config.countStatuses ?? LIVE_RUN_STATUSES)]
    const active = await this.#options.store.countRuns({ tag, statuses })
    if (active >= limit) throw new ConcurrencyLimitError(workflow, key, limit, active)
    return tag
  }
}

/** Throws `InvalidArgumentError` for a `concurrency` that cannot be registered or started with. */
export function checkQuota(
  what: string,
  config: ConcurrencyConfig | ConcurrencyQuota | undefined
): void {
  if (config === undefined) return
  checkOptions(what, config, OPTIONS.concurrency)
  const { key, limit, countStatuses } = config
  if (typeof key !== 'function' && typeof key !== 'string') {
    throw new InvalidArgumentError(what, 'needs a key')
  }
  if (typeof limit !== 'function') checkLimit(`${what}: limit`, limit)
  if (countStatuses === undefined) return
  if (!Array.isArray(countStatuses)) {
    throw new InvalidArgumentError(`${what}: countStatuses`, 'must be a list')
  }
  if (countStatuses.length === 0) {
    throw new InvalidArgumentError(
      `${what}: countStatuses`,
      'must name a status: counting none is no limit. Leave it out to count live runs'
    )
  }
  const wrong = countStatuses.find((status) => !STATUSES.includes(status))
  if (wrong === undefined) return
  throw new InvalidArgumentError(
    `${what}: countStatuses`,
    `knows no ${JSON.stringify(wrong)}; use ${STATUSES.join(', ')}`
  )
}

function checkLimit(what: string, limit: unknown): void {
  if (Number.isSafeInteger(limit) && Number(limit) >= 0) return
  throw new InvalidArgumentError(what, 'must be a whole number of at least 0')
}
