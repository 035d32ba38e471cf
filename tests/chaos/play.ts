/*
 * One play: a fleet works on a mix of runs while its processes die, its database restarts, its connections
 * are cut, its clocks disagree and a deploy rolls over it. Then everything is left alone until it is done.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { openDatabase } from '../helpers/databases.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { type Carrier, type CarrierName, crosses, isOnRedis } from './carriers.ts'
import { KINDS, type Kind } from './expectations.ts'
import { Fleet } from './fleet.ts'
import type { Asked } from './judge.ts'
import { createLedger } from './ledger.ts'
import { leftovers } from './leftovers.ts'
import { Outside } from './outside.ts'
import type { Role } from './protocol.ts'
import { RedisServer, Server, type ServerDialect } from './server.ts'
import { verdicts } from './verdicts.ts'
import type { Job } from './workflows.ts'

const MEMBERS = 6
/** Of them, where steps do not run beside their engine. */
const WORKERS = 2
const KEYS = 5
const FAR_AHEAD_MS = 90_000
/** How long the rest may take: what a clock far ahead wrote down comes only after it. */
const PATIENCE_MS = FAR_AHEAD_MS + 120_000
const LOOK_MS = 500
const MOST_PROBLEMS = 30

export interface PlayOptions {
  dialect: ServerDialect
  carrier: CarrierName
  /** How long runs arrive and things break. */
  seconds: number
  runsPerSecond: number
  random: () => number
  say: (text: string) => void
}

interface Started {
  kind: Kind
  job: Job
  runId: string
}

/** Answers what is wrong; nothing when all is well. */
export async function play(options: PlayOptions): Promise<string[]> {
  const server = await Server.begin(options.dialect)
  const redis = isOnRedis(options.carrier) ? await RedisServer.begin() : undefined
  const carrier: Carrier = {
    name: options.carrier,
    redis: redis && { url: redis.url, prefix: 'chaos' },
  }
  const db = openDatabase(server.location)
  const { random, say } = options
  const fleet = new Fleet({ roles: rolesFor(carrier), carrier, location: server.location, random })
  const over = new AbortController()
  try {
    await new LucidStateStore(db).ensureSchema()
    await createLedger(db)
    await fleet.begin()
    const outside = new Outside({ members: () => fleet.engines, random, signal: over.signal })
    const began = performance.now()
    const arrivals = arrive(options, outside)
    await breakThings(options, { server, redis, fleet })
    const { started, driven } = await arrivals
    await fleet.arrived()
    const broken = performance.now()
    const until = broken + PATIENCE_MS
    const unfinished = [
      ...(await untilDone(db, driven, until)),
      ...(await untilTaken(() => leftovers(carrier, db), until)),
    ]
    const all = ((performance.now() - began) / 1000).toFixed(0)
    say(
      `${started.length} runs, ${outside.calls} calls, ${fleet.kills} kills, ${fleet.stops} stops, ` +
        `${outside.repeated.size} calls repeated, ${outside.refusals} refused, done in ${all} s`
    )
    over.abort()
    await fleet.stopAll()
    const asked: Asked[] = started.map(({ kind, job, runId }) => ({
      runId,
      kind: kind.name,
      job,
      expected: (version) => kind.expected(job, runId, version),
    }))
    const found = await verdicts(db, asked, outside.repeated)
    // Once more: who stops gives back what it holds.
    const left = unfinished.length > 0 ? [] : await leftovers(carrier, db)
    const problems = [...fleet.problems, ...outside.problems, ...unfinished, ...left, ...found]
    return problems.length === 0
      ? []
      : [...problems.slice(0, MOST_PROBLEMS), ...fleet.lastWords.slice(-MOST_PROBLEMS)]
  } finally {
    over.abort()
    await fleet.killAll()
    await db.manager.closeAll()
    await redis?.remove()
    await server.remove()
  }
}

function rolesFor(carrier: Carrier): Role[] {
  const workers = crosses(carrier) ? WORKERS : 0
  return Array.from({ length: MEMBERS }, (_, place) => (place < workers ? 'worker' : 'engine'))
}

/** Runs come in one after the other, evenly over the time; what each needs from outside goes on beside. */
async function arrive({ seconds, runsPerSecond, random }: PlayOptions, outside: Outside) {
  const mix = KINDS.flatMap((kind) => Array.from({ length: kind.share }, () => kind))
  const started: Started[] = []
  const drives: Promise<unknown>[] = []
  const count = Math.round(seconds * runsPerSecond)
  const began = performance.now()
  for (let n = 0; n < count; n++) {
    const kind = mix[Math.floor(random() * mix.length)]
    const runId = `${kind.name}:${n}`
    const job: Job = {
      n,
      pause: Math.round(random() * 1_000),
      key: `key ${Math.floor(random() * KEYS)}`,
    }
    // Quotas are counted, then inserted: only starts one after the other are held to them exactly.
    await outside.call('start', [kind.name, job, runId])
    started.push({ kind, job, runId })
    if (kind.drive) drives.push(kind.drive(outside, runId, job))
    await pause(Math.max(0, began + (1000 * n) / runsPerSecond - performance.now()))
  }
  return { started, driven: Promise.all(drives) }
}

/** What happens when, as a share of the time. */
async function breakThings(
  options: PlayOptions,
  { server, redis, fleet }: { server: Server; redis?: RedisServer; fleet: Fleet }
): Promise<void> {
  const { seconds, random, say } = options
  let goHome = async () => {}
  const events: [number, () => Promise<unknown>][] = [
    [0.1, async () => say(`${await server.cutConnections(random)} connections cut`)],
    [
      0.15,
      async () => {
        goHome = await fleet.far(FAR_AHEAD_MS)
        say('a process comes whose clock is 90 s ahead')
      },
    ],
    [
      0.25,
      async () => {
        await server.stop()
        await pause(2_000)
        await server.start()
        say('database restarted')
      },
    ],
    [0.35, async () => goHome()],
    [0.4, async () => say(`${await server.cutConnections(random)} connections cut`)],
    [
      0.5,
      async () => {
        await fleet.rollOut(2)
        say('deployed')
      },
    ],
    [
      0.75,
      async () => {
        await server.crash()
        await pause(1_000)
        await server.start()
        say('database crashed and restarted')
      },
    ],
    [0.9, async () => say(`${await server.cutConnections(random)} connections cut`)],
  ]
  for (const share of [0.05, 0.3, 0.6, 0.7, 0.85]) events.push([share, () => fleet.killWorker()])
  if (redis) {
    const over = async (end: 'stop' | 'crash', ms: number, text: string) => {
      await redis[end]()
      await pause(ms)
      await redis.start()
      say(text)
    }
    events.push(
      [0.2, () => over('crash', 1_000, 'Redis crashed and restarted')],
      [0.45, () => over('stop', 2_000, 'Redis restarted')],
      [0.8, () => over('crash', 3_000, 'Redis crashed and restarted')]
    )
  }
  events.sort(([a], [b]) => a - b)
  const began = performance.now()
  const now = () => (performance.now() - began) / (1000 * seconds)
  while (now() < 1) {
    const [event] = events
    if (event && event[0] <= now()) {
      events.shift()
      await event[1]()
    } else {
      await fleet.killOne()
      await pause(1_000 + random() * 3_000)
    }
  }
  for (const [, happen] of events) await happen()
}

/** Waits until every run but those of entities is over; answers what is not by the end. */
async function untilDone(
  db: ReturnType<typeof openDatabase>,
  driven: Promise<unknown>,
  until: number
): Promise<string[]> {
  let callersDone = false
  void driven.then(() => (callersDone = true)).catch(() => {})
  const store = new LucidStateStore(db)
  for (;;) {
    const live = await store.listRuns({
      statuses: ['pending', 'running', 'suspended', 'blocked'],
    })
    const rest = live.filter(({ id }) => !id.startsWith('entity:'))
    if (rest.length === 0 && callersDone) return []
    if (performance.now() > until) {
      const lines = rest.map(
        ({ id, status, wakeAt, lockedBy, lockedUntil }) =>
          `${id} is ${status}: ${JSON.stringify({ wakeAt, lockedBy, lockedUntil, now: Date.now() })}`
      )
      return callersDone ? lines : ['callers still wait', ...lines]
    }
    await pause(LOOK_MS)
  }
}

/** Waits until the broker holds nothing any more; answers what it holds by the end. */
async function untilTaken(look: () => Promise<string[]>, until: number): Promise<string[]> {
  for (;;) {
    const left = await look()
    if (left.length === 0 || performance.now() > until) return left
    await pause(LOOK_MS)
  }
}
