/*
 * The world of one exploration run: data that outlive processes, time that jumps, and whoever sends the
 * signals. It starts the workflow, lets a process die where it is told to, starts another one over the
 * same data, and goes on until nothing is left to do.
 */
import { nextMacrotask, sleepOn, systemClock, systemTimers } from '../../foundation/clock.ts'
import { nextLinkId } from '../../foundation/ids.ts'
import { InMemoryStateStore } from '../../store/memory/memory_store.ts'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { isTerminalStatus, type WorkflowRun } from '../../types/run.ts'
import { Ledger } from './ledger.ts'
import { Life } from './life.ts'
import type { Boundary } from './mortal_store.ts'
import type { ExploredWorkflow, GivenSignal, StepFake } from './options.ts'
import { VirtualTime } from './virtual_time.ts'
import type { BodyWatch } from './watched_body.ts'

/** When the given signals are sent. */
export type SignalMode = 'awaited' | 'early' | 'twice'

export interface WorldOptions {
  workflows: readonly ExploredWorkflow[]
  steps: Readonly<Record<string, StepFake>>
  signals: readonly GivenSignal[]
  mode: SignalMode
  watch: BodyWatch
  first?: Ledger
  dieAt?: Boundary
  patienceMs: number
}

/** What a run came to. */
export interface Course {
  /** Every run there is, by id. */
  runs: Map<string, WorkflowRun>
  rows: Map<string, StepCheckpoint[]>
  /** Where the process died. */
  died?: string
  /** What moved no more although it had not ended. */
  stuck?: string
  /** Writes of checkpoints of the first life. */
  writes: number
  ledger: Ledger
}

const QUIET_ROUNDS = 3
/** Far more moves than any run of a test takes. */
const MOVES = 50_000
/** Moves in a row that change nothing. */
const IDLE_MOVES = 20

export class World {
  readonly #options: WorldOptions
  readonly #store = new InMemoryStateStore()
  readonly #time = new VirtualTime()
  readonly ledger: Ledger
  readonly #unsent: GivenSignal[]
  readonly reports: unknown[] = []
  #life: Life
  #died?: string
  #writes = 0
  /** Runs that wait may have lost their news with the process. */
  #poke = false

  constructor(options: WorldOptions) {
    this.#options = options
    this.#unsent = [...options.signals]
    this.ledger = new Ledger(options.first)
    this.#life = this.#begin(options.dieAt)
  }

  /** Runs it to its end. Rejects with what `engine.start` rejects with. */
  async play(workflow: string, input: unknown, runId: string): Promise<Course> {
    if (this.#options.mode === 'early') {
      for (const { token, payload } of this.#unsent.splice(0)) {
        await this.#life.engine.signal(token, payload)
      }
    }
    await this.#life.engine.start(workflow, input, runId)
    const stuck = await this.#drive(runId)
    const course = await this.#course(stuck)
    await this.#life.close()
    return course
  }

  #begin(dieAt?: Boundary): Life {
    const { workflows, steps, watch } = this.#options
    return new Life({
      base: this.#store,
      time: this.#time,
      ledger: this.ledger,
      workflows,
      steps,
      watch,
      dieAt,
      onDelivered: (token) => this.#delivered(token),
      onDeath: (where) => void (this.#died = where),
      report: (error) => void this.reports.push(error),
    })
  }

  async #drive(runId: string): Promise<string | undefined> {
    let before = ''
    for (let moves = 0, idle = 0; moves < MOVES; moves++) {
      await this.#quiet()
      if (this.#life.dead) {
        await this.#restart()
        continue
      }
      if (await this.#sendSignal()) continue
      if (this.#poke) {
        this.#poke = false
        await this.#pokeAll()
        continue
      }
      const runs = await this.#store.listRuns({})
      if (this.#ended(runs, runId) && runs.every(({ status }) => isTerminalStatus(status))) return
      const due = this.#nextDue(runs)
      const now = `${due} ${this.#time.clock()} ${this.#life.activity}`
      idle = now === before ? idle + 1 : 0
      before = now
      if (due === undefined || idle > IDLE_MOVES) {
        return this.#ended(runs, runId) ? undefined : this.#describe(runs)
      }
      await this.#time.jumpTo(Math.max(due, this.#time.clock()), () => this.#quiet())
      if (!this.#life.dead) this.#poll()
    }
    return `still moving after ${MOVES} moves`
  }

  /** Waits until nothing moves by itself; of what takes real time, only as long as it shows life. */
  async #quiet(): Promise<void> {
    let since = systemClock()
    for (let quiet = 0, rounds = 0, before = -1; quiet < QUIET_ROUNDS; rounds++) {
      await nextMacrotask()
      if (this.#life.dead) return
      const now = this.#life.activity + this.ledger.activity + this.#time.activity
      const moved = now !== before
      before = now
      if (moved) since = systemClock()
      const waits = this.ledger.running.size > 0 || this.#life.busy
      const patient = waits && systemClock() - since < this.#options.patienceMs
      quiet = moved || patient ? 0 : quiet + 1
      if (patient && rounds > QUIET_ROUNDS * 4) await sleepOn(AWAKE, 1)
    }
  }

  async #restart(): Promise<void> {
    const rows = await this.#rows()
    this.#writes = this.#life.store.writes
    this.ledger.died([...rows.values()].flat())
    await this.#life.close()
    this.#life = this.#begin()
    this.#poke = true
    this.#poll()
  }

  /** Sends a payload that somebody waits for now; one at a time. */
  async #sendSignal(): Promise<boolean> {
    if (this.#unsent.length === 0) return false
    const waiters = await this.#store.listSignalWaiters('')
    const waited = new Set(waiters.map(({ token }) => token))
    const next = this.#unsent.find(({ token }) => waited.has(token))
    if (!next) return false
    this.#send(next)
    return true
  }

  #send({ token, payload }: GivenSignal): void {
    this.#life.engine.signal(token, payload).catch((error) => void this.reports.push(error))
  }

  /** A sender repeats what nobody confirmed: so a payload is done with when it has arrived. */
  #delivered(token: string): void {
    const at = this.#unsent.findIndex((signal) => signal.token === token)
    if (at < 0) return
    const [sent] = this.#unsent.splice(at, 1)
    const last = !this.#unsent.some((signal) => signal.token === token)
    if (this.#options.mode === 'twice' && last) setImmediate(() => this.#send(sent))
  }

  /** A turn may be taken at any time: a run that has nothing to do suspends again. */
  async #pokeAll(): Promise<void> {
    for (const run of await this.#store.listRuns({ status: 'suspended' })) {
      this.#life.engine.runOne(run.id).catch((error) => void this.reports.push(error))
      await this.#quiet()
      if (this.#life.dead) return
    }
  }

  #poll(): void {
    const { engine } = this.#life
    for (const pass of [
      engine.recoverIncomplete(),
      engine.resumeDueTimers(),
      engine.runPending(),
    ]) {
      pass.catch((error) => void this.reports.push(error))
    }
  }

  /** When something is due: a run, a lease that lapses, whatever was put off. */
  #nextDue(runs: WorkflowRun[]): number | undefined {
    const now = this.#time.clock()
    const times = runs.flatMap((run): number[] => {
      if (run.status === 'pending') return [now]
      if (run.status === 'running') {
        return run.lockedBy === this.#life.id ? [] : [(run.lockedUntil ?? now) + 1]
      }
      if (isTerminalStatus(run.status)) return []
      if (run.wakeRequestedAt !== undefined) return [now]
      return run.wakeAt === undefined ? [] : [run.wakeAt]
    })
    const alarm = this.#time.nextAlarm()
    if (alarm !== undefined) times.push(alarm)
    return times.length > 0 ? Math.min(...times) : undefined
  }

  #ended(runs: WorkflowRun[], runId: string): boolean {
    const byId = new Map(runs.map((run) => [run.id, run]))
    let run = byId.get(runId)
    while (run?.status === 'completed' && byId.has(nextLinkId(run.id))) {
      run = byId.get(nextLinkId(run.id))
    }
    return run !== undefined && isTerminalStatus(run.status)
  }

  async #describe(runs: WorkflowRun[]): Promise<string> {
    const waiters = await this.#store.listSignalWaiters('')
    const rows = await this.#rows()
    const lines = runs
      .filter(({ status }) => !isTerminalStatus(status))
      .map(({ id, status }) => {
        const running = [...this.ledger.running].filter((place) => place.runId === id)
        if (running.length > 0) {
          const names = running.map(({ name }) => `"${name}"`).join(', ')
          return `run ${id} (${status}) executes ${names}, which shows no end`
        }
        const open = (rows.get(id) ?? []).filter((row) =>
          ['pending', 'running'].includes(row.status)
        )
        const tokens = waiters.filter((waiter) => waiter.runId === id)
        const on = [
          ...open.map(({ name }) => `"${name}"`),
          ...tokens.map(({ token }) => `signal "${token}"`),
        ]
        return `run ${id} (${status}) waits for ${on.join(', ') || 'something outside its ctx'}`
      })
    return lines.join('; ')
  }

  async #rows(): Promise<Map<string, StepCheckpoint[]>> {
    const rows = new Map<string, StepCheckpoint[]>()
    for (const { id } of await this.#store.listRuns({})) {
      rows.set(id, await this.#store.listCheckpoints(id))
    }
    return rows
  }

  async #course(stuck: string | undefined): Promise<Course> {
    const runs = await this.#store.listRuns({})
    return {
      runs: new Map(runs.map((run) => [run.id, run])),
      rows: await this.#rows(),
      died: this.#died,
      stuck,
      writes: this.#died === undefined ? this.#life.store.writes : this.#writes,
      ledger: this.ledger,
    }
  }
}

/** Keeps the process awake, unlike the timers of an engine. */
const AWAKE = {
  ...systemTimers,
  after(ms: number, fn: () => void) {
    const timer = setTimeout(fn, ms)
    return () => clearTimeout(timer)
  },
}
