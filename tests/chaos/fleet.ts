/*
 * Six processes or more, whichever they are at the moment. Every place has one; it is killed and replaced,
 * and replaced by the next deploy while the old one drains.
 */
import type { DatabaseLocation } from '../helpers/databases.ts'
import type { Carrier } from './carriers.ts'
import { MemberProcess } from './member_process.ts'
import type { Role } from './protocol.ts'
import type { Deploy } from './workflows.ts'

export const LEASE_MS = 3_000
const STOP_MS = 12_000
/** What a member says of an outage of the database, again and again. */
const OUTAGE = /could not be reached|fire again/

export interface FleetOptions {
  /** One process for each. */
  roles: readonly Role[]
  carrier: Carrier
  location: DatabaseLocation
  random: () => number
}

export class Fleet {
  readonly #options: FleetOptions
  readonly #places: (MemberProcess | undefined)[]
  /** Beside the places: it is not replaced. */
  #stranger?: MemberProcess
  readonly #living = new Set<MemberProcess>()
  readonly #arriving = new Set<Promise<unknown>>()
  #deploy: Deploy = 1
  #born = 0
  kills = 0
  stops = 0
  /** What went wrong with a member itself. */
  readonly problems: string[] = []
  /** What killed and stopped members printed last; shown when something is wrong. */
  readonly lastWords: string[] = []

  constructor(options: FleetOptions) {
    this.#options = options
    this.#places = options.roles.map(() => undefined)
  }

  get members(): MemberProcess[] {
    return [...this.#places, this.#stranger].filter((member) => member !== undefined)
  }

  /** Those that take calls. */
  get engines(): MemberProcess[] {
    return this.members.filter(({ options }) => options.role === 'engine')
  }

  async begin(): Promise<void> {
    await Promise.all(this.#places.map((_, place) => this.#fill(place)))
  }

  /** Kills one in the middle of its work; another takes its place while the rest go on. */
  async killOne(): Promise<void> {
    await this.#killAt(Math.floor(this.#options.random() * this.#places.length))
  }

  /** Kills one that runs steps, if one is there. */
  async killWorker(): Promise<void> {
    const { roles } = this.#options
    const there = this.#places.findIndex((one, place) => one && roles[place] === 'worker')
    if (there >= 0) await this.#killAt(there)
  }

  async #killAt(place: number): Promise<void> {
    const victim = this.#places[place]
    if (!victim) return
    this.#places[place] = undefined
    this.kills += 1
    await this.#end(victim, () => victim.kill())
    this.#later(this.#fill(place))
  }

  /** The next deploy: new ones come up beside the old, which then stop as they are asked to. */
  async rollOut(deploy: Deploy): Promise<void> {
    this.#deploy = deploy
    await this.arrived()
    for (let place = 0; place < this.#places.length; place++) {
      const old = this.#places[place]
      await this.#fill(place)
      if (old) this.#later(this.#stop(old))
    }
  }

  /** One more whose clock is far ahead, until the answer is called. */
  async far(skewMs: number): Promise<() => Promise<void>> {
    const stranger = await this.#spawn('engine', skewMs)
    this.#stranger = stranger
    return async () => {
      this.#stranger = undefined
      await this.#end(stranger, () => stranger.kill())
    }
  }

  async arrived(): Promise<void> {
    await Promise.all(this.#arriving)
  }

  /** Stops everybody as a deploy does. */
  async stopAll(): Promise<void> {
    await this.arrived()
    const all = this.members
    this.#places.fill(undefined)
    this.#stranger = undefined
    await Promise.all(all.map((member) => this.#stop(member)))
  }

  async killAll(): Promise<void> {
    await Promise.allSettled(this.#arriving)
    await Promise.all([...this.#living].map((member) => this.#end(member, () => member.kill())))
  }

  async #fill(place: number): Promise<void> {
    // Up to a third of the lease apart: what leases have to bear.
    const skew = (this.#options.random() - 0.5) * (2 / 3) * LEASE_MS
    this.#places[place] = await this.#spawn(this.#options.roles[place], Math.round(skew))
  }

  async #spawn(role: Role, skewMs: number): Promise<MemberProcess> {
    this.#born += 1
    const { location, carrier } = this.#options
    const member = await MemberProcess.begin({
      name: `${role === 'engine' ? 'm' : 'w'}${this.#born}-d${this.#deploy}`,
      role,
      carrier,
      location,
      deploy: this.#deploy,
      skewMs,
      leaseMs: LEASE_MS,
    })
    this.#living.add(member)
    return member
  }

  #later(work: Promise<unknown>): void {
    this.#arriving.add(work)
    void work.finally(() => this.#arriving.delete(work))
  }

  async #stop(member: MemberProcess): Promise<void> {
    this.stops += 1
    await this.#end(member, async () => {
      const code = await member.stop(STOP_MS)
      if (code !== 0) this.problems.push(`${member.options.name} did not stop in time (${code})`)
    })
  }

  async #end(member: MemberProcess, end: () => Promise<unknown>): Promise<void> {
    if (member.broke) this.problems.push(`${member.options.name} ended by itself: ${member.output}`)
    await end()
    this.#living.delete(member)
    const words = member.output.split('\n').filter((line) => line !== '' && !OUTAGE.test(line))
    this.lastWords.push(...new Set(words))
  }
}
