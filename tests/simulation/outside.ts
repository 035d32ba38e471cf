/*
 * The outside: clients that send signals, updates and events, do tasks, call webhooks back, let runs go on
 * and send operations to entities: early, late, twice, and again when a call did not resolve.
 */
import { acceptsEvent, type EventMatch } from '../../src/foundation/event_match.ts'
import { readEventToken } from '../../src/foundation/tokens.ts'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import type { SignalWaiter } from '../../src/types/checkpoint.ts'
import { isTerminalStatus, LIVE_RUN_STATUSES, type WorkflowRun } from '../../src/types/run.ts'
import type { EventPayload, TaskLeaf } from './effects.ts'
import { ENTITY, isEntityRun } from './entities.ts'
import type { Payloads } from './payloads.ts'
import { EVENTS, leavesOf, nameOf, PAD, type Program, REFUSED, TOKENS } from './programs.ts'
import { below, pick, type Random } from './random.ts'
import type { Shadow } from './shadow.ts'
import type { SimProcess } from './sim_process.ts'
import type { VirtualTime } from './virtual_time.ts'

export interface OutsideWorld {
  time: VirtualTime
  random: Random
  shadow: Shadow
  store: StateStore
  payloads: Payloads
  programs: ReadonlyMap<string, Program>
  /** Some process may know no validator yet. */
  refusing: boolean
  any(): SimProcess | undefined
  fail(kind: string, text: string): void
  note(text: () => string): void
}

type Call = (engine: WorkflowEngine) => Promise<unknown>

const AGAIN_MS = 900

export class Outside {
  readonly #world: OutsideWorld
  /** Callback addresses and tasks that somebody knows. */
  readonly #known = new Set<string>()
  /** Tasks of which a report was accepted. */
  readonly #reported = new Set<string>()
  /** How often a run was told to go on. */
  readonly #continued = new Map<string, number>()
  /** Accepted operations on entities, and their keys. */
  readonly told = new Map<string, string>()
  toldAt = 0
  #operations = 0

  constructor(world: OutsideWorld) {
    this.#world = world
  }

  /** Clients act at random moments: `chaos` answers one. */
  schedule(chaos: () => number): void {
    const { time, random } = this.#world
    const at = (n: number, act: () => void) => {
      for (let i = below(random, n); i > 0; i--) time.after(chaos(), act)
    }
    if (this.#has('event')) at(12, () => this.publish(pick(random, EVENTS), below(random, 2)))
    if (this.#has('update')) at(10, () => this.#updateAny())
    if (this.#has('breakpoint')) at(6, () => this.#continueAny())
    if (this.#has('callEntity') || this.#has('signalEntity')) at(5, () => this.#operate())
  }

  signal(token: string): void {
    const { payloads, any } = this.#world
    const payload = `${token}/p${payloads.count}`
    const one = any()
    if (!one) return
    const entry = payloads.sent(payload, token)
    entry.attempts += 1
    one.engine.signal(token, payload).then(
      () => void entry.accepted++,
      () => {}
    )
  }

  publish(event: string, k: number): void {
    const { payloads, random } = this.#world
    const payload: EventPayload = { event, nr: payloads.publishing(event), k, pad: PAD }
    const done = () => payloads.published(payload.nr)
    this.#call((engine) => engine.publishEvent(event, payload), { done, again: random() < 0.5 })
  }

  update(runId: string, name: string): void {
    const { payloads, random, refusing } = this.#world
    const token = `update:${runId}:${name}`
    const refused = !refusing && random() < 0.2
    const arg = `${token}/${refused ? REFUSED : 'p'}${payloads.count}`
    const entry = payloads.sent(arg, token)
    const call = async (engine: WorkflowEngine) => {
      entry.attempts += refused ? 0 : 1
      const result = await engine.update(runId, name, arg)
      if (result.accepted) entry.accepted += 1
    }
    this.#call(call, { again: random() < 0.3 })
  }

  /** A task is somebody's: they report it, soon or late, sometimes twice. */
  handedOver(runId: string, leaf: TaskLeaf): void {
    const { time, random } = this.#world
    const name = nameOf(leaf)
    if (random() < 0.1) return
    const report = () => this.#report(runId, name)
    const delay = random() < 0.25 ? 0 : random() < 0.8 ? 1500 * random() : 6000 * random()
    time.after(delay, report)
    if (random() < 0.2) time.after(2 * delay * random(), report)
  }

  /** Somebody knows the address: they call back before the wait, while it lasts, or never. */
  minted(token: string): void {
    const { time, random } = this.#world
    if (this.#known.has(token)) return
    this.#known.add(token)
    if (random() < 0.35) return
    const delay = 1500 * random() * random()
    time.after(delay, () => this.#callBack(token))
    if (random() < 0.15) time.after(3 * delay * random(), () => this.#callBack(token))
  }

  /** What the run at this wait needs to go on, unless that is there already and must be found. */
  async answer(waiter: SignalWaiter): Promise<void> {
    const { token, runId, seq } = waiter
    const { shadow, store, payloads, random } = this.#world
    if (TOKENS.includes(token)) return this.signal(token)
    const run = shadow.run(runId)
    if (!run || isTerminalStatus(run.status)) return
    const [, , name] = /^(update|task):(?:.*):([^:]*)$/.exec(token) ?? []
    if (token.startsWith('update:')) this.update(runId, name)
    else if (token.startsWith('bp:')) this.#continue(runId)
    else if (token.startsWith('wh:')) {
      if (!payloads.hasAccepted(token)) this.#callBack(token)
    } else if (token.startsWith('task:')) {
      if (!this.#reported.has(token)) this.#report(runId, name)
    } else if (token.startsWith('event:')) {
      const wait = readEventToken(token)!
      const input = shadow.row(runId, seq)?.input as { match?: EventMatch } | undefined
      const match = wait.match ?? input?.match
      const buffered = await store.listBufferedEvents(wait.name, 50)
      if (buffered.some(({ payload }) => acceptsEvent(match, payload))) return
      this.publish(wait.name, (match?.k as number | undefined) ?? below(random, 2))
    }
  }

  /** Nobody went on at a breakpoint unless told so. */
  verify(): void {
    const { shadow, fail } = this.#world
    for (const { id } of shadow.runs()) {
      const over = shadow
        .rows(id)
        .filter(({ name, status }) => name.startsWith('signal:bp:') && status === 'completed')
      const told = this.#continued.get(id) ?? 0
      if (over.length > told) fail('breakpoint', `${id} went on ${over.length} ×, told ${told} ×`)
    }
  }

  #report(runId: string, name: string): void {
    const { payloads, random, note } = this.#world
    const token = `task:${runId}:${name}`
    const text = `K${runId} ${name.slice(1)}.${payloads.count}`
    const entry = payloads.sent(text, token)
    const fails = random() < 0.2
    note(() => `somebody reports ${text}${fails ? ' failed' : ''}`)
    const call = (engine: WorkflowEngine) => {
      entry.attempts += 1
      return fails ? engine.failTask(runId, name, text) : engine.completeTask(runId, name, text)
    }
    this.#call(call, { done: () => void this.#reported.add(token), again: true })
  }

  #callBack(token: string): void {
    const { payloads } = this.#world
    const payload = `${token}/p${payloads.count}`
    const entry = payloads.sent(payload, token)
    const call = async (engine: WorkflowEngine) => {
      entry.attempts += 1
      await engine.signal(token, payload)
      entry.accepted += 1
    }
    this.#call(call, { again: true })
  }

  #continue(runId: string): void {
    this.#continued.set(runId, (this.#continued.get(runId) ?? 0) + 1)
    this.#call((engine) => engine.continue(runId), {})
  }

  #continueAny(): void {
    const run = pick(this.#world.random, this.#live())
    if (run) this.#continue(run.id)
  }

  #updateAny(): void {
    const { random, programs } = this.#world
    const run = pick(random, this.#live())
    if (!run) return
    const names = leavesOf(programs.get(run.workflow)!.root).flatMap((leaf) =>
      leaf.t === 'update' ? [leaf.update] : []
    )
    if (names.length > 0) this.update(run.id, pick(random, names))
  }

  #operate(): void {
    const { random } = this.#world
    const key = pick(random, ['k0', 'k1'])
    const who = `x${this.#operations++}`
    const { time } = this.#world
    const done = () => {
      this.told.set(who, key)
      this.toldAt = time.now
    }
    this.#call((engine) => engine.signalEntity(ENTITY, key, 'add', { who }), { done })
  }

  /** Calls somewhere; with `again`, until it resolves: a caller that heard nothing asks once more. */
  #call(call: Call, options: { done?: () => void; again?: boolean }): void {
    const { any, time, random } = this.#world
    const { done, again } = options
    const once = () => {
      let over = false
      const retry = () => {
        if (over) return
        over = true
        if (again) once()
      }
      const one = any()
      if (!one) return void time.after(300, retry)
      call(one.engine).then(
        () => {
          over = true
          done?.()
        },
        () => void time.after(300 * random(), retry)
      )
      if (again) time.after(AGAIN_MS, retry)
    }
    once()
  }

  #live(): WorkflowRun[] {
    const { shadow } = this.#world
    return shadow
      .runs()
      .filter((run) => LIVE_RUN_STATUSES.includes(run.status) && !isEntityRun(run))
  }

  #has(kind: string): boolean {
    const { programs } = this.#world
    return [...programs.values()].some(({ root }) => leavesOf(root).some(({ t }) => t === kind))
  }
}
