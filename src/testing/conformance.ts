/*
 * The conformance kits: one call in a spec file runs every case of a port's contract against a driver.
 */
import type { StateStore } from '../store/state_store.ts'
import type { RunQueue } from '../transport/ports.ts'
import { ADMISSION_CASES } from './contracts/admission.ts'
import { type AdmissionFactory, runAdmissionCase } from './contracts/admission/bench.ts'
import { bindCases, type ContractTest } from './contracts/bind.ts'
import { RUN_QUEUE_CASES, type RunQueueSettings } from './contracts/run_queue.ts'
import { transportCases } from './contracts/transport.ts'
import { runTransportCase, type TransportUnderContract } from './contracts/transport/bench.ts'
import { STATE_STORE_CASES, type StoreCase, type StoreUnderTest } from './contracts/state_store.ts'

export type {
  AdmissionAbility,
  AdmissionSettings,
  AdmissionUnderContract,
} from './contracts/admission/bench.ts'
export type { ContractTest } from './contracts/bind.ts'
export type { RunQueueSettings } from './contracts/run_queue.ts'
export type { TransportUnderContract } from './contracts/transport/bench.ts'
export type { TransportAbility, TransportSettings } from './contracts/transport/case.ts'

/** Stamped on `StateStoreUnavailableError`. Shared by all copies of the package in a process. */
const UNAVAILABLE: unique symbol = Symbol.for('@agora/durable:state-store-unavailable') as never

/** Throw it from a factory whose backend is not there: its cases are skipped, with one line. */
export class StateStoreUnavailableError extends Error {
  readonly [UNAVAILABLE] = true

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'StateStoreUnavailableError'
  }
}

/** What a factory makes for one case. */
export interface StateStoreUnderContract {
  /** Empty, and of this case alone. */
  store: StateStore
  /** Closes it and removes what it kept. */
  cleanup: () => Promise<void> | void
  /** False for a driver whose transactions cannot await; default true. */
  supportsAsyncTransaction?: boolean
  /** False for a driver that cannot filter runs by tag; default true. */
  supportsTagFilter?: boolean
}

export interface StateStoreContractOptions {
  /** `test` of vitest or `node:test`; default Japa, inside a Japa run. */
  test?: ContractTest
  /** Cases not to run: the exact name of a case and a sentence that says why. */
  except?: Record<string, string>
}

/**
 * Registers the state-store contract for one driver, as one test a case. `factory` runs once for each case.
 * Optional members that the driver does not have are not tested, but for those that the kit requires.
 *
 * @example
 * runStateStoreContract('MyStateStore', async () => {
 *   const store = new MyStateStore()
 *   return { store, cleanup: () => store.close() }
 * })
 */
export function runStateStoreContract(
  name: string,
  factory: () => Promise<StateStoreUnderContract>,
  options: StateStoreContractOptions = {}
): void {
  const except = new Map(Object.entries(options.except ?? {}))
  const note = notesOf(name)
  const cases = STATE_STORE_CASES.map((each) => ({
    title: each.name,
    skip: except.get(each.name),
    run: () => runCase(each, factory, note),
  }))
  for (const title of except.keys()) {
    if (!cases.some((each) => each.title === title)) throw new Error(`No case is named "${title}"`)
  }
  bindCases(name, cases, options.test)
}

/**
 * Registers the transport contract for one driver, as one test a case. `factory` runs once for each case, and
 * gives it an empty backend of its own. Cases of optional members that the driver does not have, and of
 * abilities that are not listed, are left out, with one line.
 *
 * @example
 * runTransportContract('MyTransport', async () => {
 *   const backend = await emptyBackend()
 *   return {
 *     open: (settings) => new MyTransport(backend, settings),
 *     abilities: ['shared'],
 *     cleanup: () => backend.close(),
 *   }
 * })
 */
export function runTransportContract(
  name: string,
  factory: () => Promise<TransportUnderContract> | TransportUnderContract,
  options: { test?: ContractTest } = {}
): void {
  const note = notesOf(name)
  const cases = transportCases.map((each) => ({
    title: each.title,
    run: async () => runTransportCase(each, await factory(), note),
  }))
  bindCases(name, cases, options.test)
}

/** What a factory makes for one case of the run-queue contract. */
export interface RunQueueUnderContract {
  /**
   * Another process on the backend of this case; called several times. Consumption is not deferred.
   * `settings` come with cases of `supportsLeases`; `onError` is always to be honoured.
   */
  open(settings?: RunQueueSettings): Promise<RunQueue>
  /** Closes all of them and removes what they kept. */
  cleanup: () => Promise<void> | void
  /** False for a queue that delivers in no order of priority; default true. */
  supportsPriority?: boolean
  /** True for a queue whose messages outlive their consumer, and whose `open` honours settings; default false. */
  supportsLeases?: boolean
}

/**
 * Registers the contract of the run queue (`dispatchRun`, `onRun`) for one transport, as one test a case.
 * `factory` runs once for each case, and gives it an empty backend of its own.
 *
 * @example
 * runRunDispatchContract('MyTransport', async () => {
 *   const backend = await emptyBackend()
 *   return { open: async () => new MyTransport(backend), cleanup: () => backend.close() }
 * })
 */
export function runRunDispatchContract(
  name: string,
  factory: () => Promise<RunQueueUnderContract>,
  options: { test?: ContractTest } = {}
): void {
  const note = notesOf(name)
  const cases = RUN_QUEUE_CASES.map(({ title, needs, run }) => ({
    title,
    run: async () => {
      const made = await factory()
      try {
        if (needs === 'priority' && made.supportsPriority === false) {
          note('supportsPriority is false')
        } else if (needs === 'leases' && made.supportsLeases !== true) {
          note('supportsLeases is not true')
        } else {
          await run(made)
        }
      } finally {
        await made.cleanup()
      }
    },
  }))
  bindCases(name, cases, options.test)
}

/**
 * Registers the contract of an admission backend, as one test a case. `factory` runs once for each case; the
 * backend it makes reads the time from `clock`, which the case moves, and is closed afterwards. For a backend
 * that several instances share it answers how to `open` them, and its `abilities`; cases of abilities that are
 * not listed are left out, with one line.
 *
 * @example
 * runAdmissionBackendContract('MyAdmission', (clock) => new MyAdmission({ clock }))
 *
 * runAdmissionBackendContract('SharedAdmission', async (clock) => {
 *   const server = await emptyServer()
 *   return {
 *     open: ({ instanceTtlMs, standsStill }) =>
 *       new SharedAdmission(server, { clock, instanceTtlMs, beats: !standsStill }),
 *     abilities: ['shared', 'leases'],
 *     cleanup: () => server.close(),
 *   }
 * })
 */
export function runAdmissionBackendContract(
  name: string,
  factory: AdmissionFactory,
  options: { test?: ContractTest } = {}
): void {
  const note = notesOf(name)
  const cases = ADMISSION_CASES.map((each) => ({
    title: each.title,
    run: () => runAdmissionCase(each, factory, note),
  }))
  bindCases(name, cases, options.test)
}

/** Writes each line once. */
function notesOf(name: string): (line: string) => void {
  const noted = new Set<string>()
  return (line) => {
    if (noted.has(line)) return
    noted.add(line)
    process.stdout.write(`  skipped: ${name}: ${line}\n`)
  }
}

async function runCase(
  each: StoreCase,
  factory: () => Promise<StateStoreUnderContract>,
  note: (line: string) => void
): Promise<void> {
  let made: StateStoreUnderContract
  try {
    made = await factory()
  } catch (error) {
    if (!isUnavailable(error)) throw error
    note(error.message)
    return
  }
  let failed = true
  try {
    if (applies(each, made, note)) await each.run(made.store as StoreUnderTest)
    failed = false
  } finally {
    // The failure of the case says more than that of its cleanup.
    if (failed) await Promise.resolve(made.cleanup()).catch(() => {})
    else await made.cleanup()
  }
}

function applies(
  each: StoreCase,
  made: StateStoreUnderContract,
  note: (line: string) => void
): boolean {
  const missing = (each.requires ?? []).filter((name) => typeof made.store[name] !== 'function')
  if (missing.length > 0) {
    const lacks = `the store has no ${missing.join(', ')}`
    if (each.kit) throw new Error(`${lacks}, which every store must have to pass`)
    note(lacks)
    return false
  }
  if (each.needs === 'tagFilter' && made.supportsTagFilter === false) {
    note('supportsTagFilter is false')
    return false
  }
  if (each.needs === 'asyncTransaction' && made.supportsAsyncTransaction === false) {
    note('supportsAsyncTransaction is false')
    return false
  }
  return true
}

function isUnavailable(error: unknown): error is Error {
  return (
    typeof error === 'object' &&
    error !== null &&
    (error as { [UNAVAILABLE]?: unknown })[UNAVAILABLE] === true
  )
}
