/*
 * What suspended runs wait for, read off the tokens of their waiters.
 */
import { InvalidArgumentError } from '../errors.ts'
import type { FullStore } from '../store/full_store.ts'
import type { SignalWaiter } from '../types/checkpoint.ts'
import type { RunWaiting } from '../types/run.ts'

/**
 * What a waiter's token stands for: a webhook, a breakpoint, a child (named by its run id), a named event
 * or a signal. Pure; any text is answered.
 */
export function waitingOf(token: string): RunWaiting {
  if (token.startsWith('wh:')) return { on: 'webhook', name: token }
  if (token.startsWith('bp:')) return { on: 'breakpoint', name: 'breakpoint' }
  if (token.startsWith('child:')) return { on: 'child', name: token.slice('child:'.length) }
  return { on: 'signal', name: eventNameOf(token) ?? token }
}

/** The name in `event:<base64 name>:…`; undefined for a token that is none, or holds only half of it. */
function eventNameOf(token: string): string | undefined {
  const encoded = /^event:([A-Za-z0-9+/_-]+={0,2}):/.exec(token)?.[1]
  const name = encoded && Buffer.from(encoded, 'base64').toString('utf8')
  return name && !name.includes('\ufffd') ? name : undefined
}

const RUNS_A_READ = 500

/**
 * What each of these runs is parked on, by run id; runs that are not suspended, wait for nothing but time
 * or are unknown are absent. Of several waits the first by position counts.
 */
export async function waitingFor(
  store: FullStore,
  runIds: readonly string[]
): Promise<Record<string, RunWaiting>> {
  if (!Array.isArray(runIds)) {
    throw new InvalidArgumentError('waitingFor: the run ids', 'must be a list')
  }
  const found: [string, RunWaiting][] = []
  const ids = [...new Set(runIds)]
  for (let from = 0; from < ids.length; from += RUNS_A_READ) {
    const runs = await store.getRuns(ids.slice(from, from + RUNS_A_READ))
    const parked = runs.filter(({ status }) => status === 'suspended').map(({ id }) => id)
    if (parked.length === 0) continue
    const first = firstOfRuns(await store.listSignalWaitersByRunIds(parked))
    for (const waiter of first) found.push([waiter.runId, waitingOf(waiter.token)])
  }
  return Object.fromEntries(found)
}

function firstOfRuns(waiters: SignalWaiter[]): Iterable<SignalWaiter> {
  const first = new Map<string, SignalWaiter>()
  for (const waiter of waiters) {
    const known = first.get(waiter.runId)
    if (!known || waiter.seq < known.seq) first.set(waiter.runId, waiter)
  }
  return first.values()
}
