/*
 * What is left in the signal buffer of a run that is gone: payloads on tokens that were derived from its
 * id, which nobody can wait for any more.
 */
import type { FullStore } from '../../store/full_store.ts'

/** Tokens of a run end in a number after these. */
const BY_POSITION = ['wh', 'bp', 'entityreply']
/** And in a name that the author chose after these. */
const BY_NAME = ['task', 'update']
/** What follows the run's id in the ids of its children: one that failed to start left that behind. */
const BY_CHILD = ['.child.', '.all.']

/** Drops the payloads that are buffered on tokens of these runs. */
export async function dropBuffers(store: FullStore, runIds: string[]): Promise<void> {
  if (runIds.length === 0) return
  const erased = new Set(runIds)
  const own = new Set(runIds.map((id) => `child:${id}`))
  const prefixes = runIds.flatMap((id) => [
    ...[...BY_POSITION, ...BY_NAME].map((kind) => `${kind}:${id}:`),
    ...BY_CHILD.map((infix) => `child:${id}${infix}`),
  ])
  const others = new Map<string, string[]>()
  for (const token of await store.listBufferedTokens(prefixes)) {
    const owners = ownersOf(token)
    if (owners.length === 0) continue
    // Of a run whose id begins like one that went, or of a child.
    const doubtful = owners.filter((id) => !erased.has(id))
    if (doubtful.length === 0) own.add(token)
    else others.set(token, doubtful)
  }
  if (others.size > 0) {
    const standing = await store.getRuns([...others.values()].flat())
    const ids = new Set(standing.map((run) => run.id))
    for (const [token, doubtful] of others) if (!doubtful.some((id) => ids.has(id))) own.add(token)
  }
  await store.dropBufferedSignals([...own])
}

/** The runs a token may belong to: ids and names may hold colons. */
function ownersOf(token: string): string[] {
  const [kind, ...rest] = token.split(':')
  if (kind === 'child') return [rest.join(':')]
  if (BY_POSITION.includes(kind)) {
    return /^\d+$/.test(rest.at(-1) ?? '') ? [rest.slice(0, -1).join(':')] : []
  }
  return rest.slice(1).map((_, i) => rest.slice(0, i + 1).join(':'))
}
