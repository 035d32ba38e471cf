/*
 * What an engine knows of the workers of its transports.
 */
import { InvalidArgumentError } from '../errors.ts'
import type { TransportPool } from '../transport/pool.ts'
import type { GroupHealth } from '../wire/messages.ts'

export interface FleetApi {
  /**
   * The worker groups that this engine is known to dispatch to, each once: `extra`, for nothing else is
   * registered with a group so far. Throws `InvalidArgumentError` for what is no group.
   */
  knownGroups(extra?: string[]): string[]
  /**
   * Backlog and live workers of each group: those of `knownGroups(extra)`, and every other one with a live
   * worker, by name. A group that is in trouble has a `depth` and no live worker: name it in `extra`, for
   * nobody else would. Empty where no transport can tell; rejects when none that could answers.
   */
  workerHealth(extra?: string[]): Promise<GroupHealth[]>
}

export function knownGroups(extra: readonly string[] = []): string[] {
  const isGroup = (group: unknown) => typeof group === 'string' && group !== ''
  if (!Array.isArray(extra) || !extra.every(isGroup)) {
    throw new InvalidArgumentError('groups', 'must be a list of texts that are not empty')
  }
  return [...new Set(extra as readonly string[])]
}

export async function workerHealth(
  { pool }: { pool?: TransportPool },
  extra?: readonly string[]
): Promise<GroupHealth[]> {
  const known = knownGroups(extra)
  if (!pool) return []
  const beats = await pool.readAllWorkerHeartbeats()
  const alive = beats.map(({ group }) => group).sort()
  const groups = [...new Set([...known, ...alive])]
  const healths = await Promise.all(groups.map((group) => pool.groupHealth(group)))
  return healths.filter((health) => health !== undefined)
}
