/*
 * What a case of the admission contract is, what it may ask of a backend, and how it is run over what a
 * factory made for it.
 */
import assert from 'node:assert/strict'
import type { Clock } from '../../../foundation/clock.ts'
import { randomId } from '../../../foundation/ids.ts'
import type {
  Admission,
  AdmissionBackend,
  AdmissionRequest,
  QueueConfig,
} from '../../../flow/port.ts'

/**
 * What a backend can be shown to do beyond its members:
 * - `shared`: several instances meet on the queues of the case.
 * - `leases`: slots outlive their instance, and come back when it has been silent for `instanceTtlMs`. `open`
 *   honours the settings; the cases wait for up to 5 s.
 */
export type AdmissionAbility = 'shared' | 'leases'

/** How a case wants an instance to be. */
export interface AdmissionSettings {
  /** Silence after which it is dead and its slots come back, in ms; default longer than any case takes. */
  instanceTtlMs?: number
  /** Gives no sign of life but its requests, as a process that died after the last one. */
  standsStill?: boolean
}

/** What a factory makes for one case of the admission contract. */
export interface AdmissionUnderContract {
  /** Another instance on the queues of this case; called several times. The case closes what was opened. */
  open(settings: AdmissionSettings): AdmissionBackend | Promise<AdmissionBackend>
  /** What the backend can be shown to do beyond its members; default nothing. */
  abilities?: readonly AdmissionAbility[]
  /** Removes what the case kept. */
  cleanup?(): Promise<void> | void
}

type Made = AdmissionBackend | AdmissionUnderContract
export type AdmissionFactory = (clock: Clock) => Made | Promise<Made>

export interface AdmissionCase {
  title: string
  abilities?: readonly AdmissionAbility[]
  run(bench: AdmissionBench): Promise<void>
}

type More = Omit<AdmissionRequest, 'waiterId'>
type Caps = Omit<QueueConfig, 'name'>

/** One process that shares the queue of a case. */
export class AdmissionInstance {
  #closing?: Promise<void>

  constructor(
    readonly backend: AdmissionBackend,
    readonly queue: string
  ) {}

  register(config: Caps): void {
    this.backend.registerQueue({ name: this.queue, ...config })
  }

  ask(waiterId: string, more: More = {}): Promise<Admission> {
    return this.backend.tryAdmit(this.queue, { waiterId, ...more })
  }

  async isAdmitted(waiterId: string, more?: More): Promise<boolean> {
    const { admitted } = await this.ask(waiterId, more)
    return admitted
  }

  async admits(waiterId: string, more?: More): Promise<void> {
    assert.equal(await this.isAdmitted(waiterId, more), true, `${waiterId} is admitted`)
  }

  /** Answers when to ask again. */
  async denies(waiterId: string, more?: More): Promise<number> {
    const answer = await this.ask(waiterId, more)
    assert.equal(answer.admitted, false, `${waiterId} is denied`)
    return answer.admitted ? 0 : answer.retryAt
  }

  release(waiterId: string): Promise<void> {
    return this.backend.release(this.queue, waiterId)
  }

  /** Once: closing twice is not asked of a backend. */
  close(): Promise<void> {
    this.#closing ??= Promise.resolve(this.backend.close?.())
    return this.#closing
  }
}

/** Windows of any length begin at it, whether at the first admission or at a round moment. */
const BEGINNING = 1_767_225_600_000

type Open = (settings?: AdmissionSettings) => Promise<AdmissionInstance>

/** The first instance of a case, with its clock and the way to others. */
export class AdmissionBench extends AdmissionInstance {
  now = BEGINNING
  readonly #open: Open

  constructor({ backend, queue }: AdmissionInstance, open: Open) {
    super(backend, queue)
    this.#open = open
  }

  /** Another instance, which knows the queue. */
  async another(config: Caps, settings?: AdmissionSettings): Promise<AdmissionInstance> {
    const instance = await this.#open(settings)
    instance.register(config)
    return instance
  }
}

/** Runs a case, or notes why it does not apply. */
export async function runAdmissionCase(
  { abilities = [], run }: AdmissionCase,
  factory: AdmissionFactory,
  note: (line: string) => void
): Promise<void> {
  let bench: AdmissionBench | undefined
  const made = underContract(await factory(() => bench?.now ?? BEGINNING))
  const queue = `conf-${randomId()}`
  const opened: AdmissionInstance[] = []
  const open: Open = async (settings = {}) => {
    const instance = new AdmissionInstance(await made.open(settings), queue)
    opened.push(instance)
    return instance
  }
  try {
    bench = new AdmissionBench(await open(), open)
    const missing = abilities.filter((ability) => !made.abilities?.includes(ability))
    if (missing.length === 0) await run(bench)
    else note(`abilities do not list ${missing.join(', ')}`)
  } finally {
    await Promise.all(opened.map((instance) => instance.close()))
    await made.cleanup?.()
  }
}

const underContract = (made: Made): AdmissionUnderContract =>
  'open' in made ? made : { open: () => made }
