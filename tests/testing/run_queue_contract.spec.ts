/*
 * The run-queue contract: a queue that keeps it passes, and each defect is noticed.
 */
import { test } from '@japa/runner'
import type { RunDispatch, Transport } from '../../index.ts'
import { runRunDispatchContract } from '../../src/testing/conformance.ts'
import { RUN_QUEUE_CASES } from '../../src/testing/contracts/run_queue.ts'

type RunQueue = Required<Pick<Transport, 'dispatchRun' | 'onRun'>>
type Handler = (run: RunDispatch) => Promise<void>
type Defect =
  'delivers to all' | 'mixes scopes' | 'stops at once' | 'goes on' | 'strips' | 'ignores priority'

interface Waiting {
  run: RunDispatch
  scope: string
}

interface Consumer {
  scope: string
  handler: Handler
  inFlight: Set<Promise<void>>
}

/** A backend in memory, with the run queues of several processes on it. */
class Backend {
  readonly #waiting: Waiting[] = []
  readonly #consumers = new Set<Consumer>()
  readonly #defect?: Defect
  #next = 0

  constructor(defect?: Defect) {
    this.#defect = defect
  }

  async open(): Promise<RunQueue> {
    const scopes = new Set<string>()
    return {
      dispatchRun: async (run, scope = run.namespace ?? 'default') => {
        this.#waiting.push({ run: structuredClone(run), scope })
        this.#pump()
      },
      onRun: (scope, handler) => {
        const consumer: Consumer = { scope, handler, inFlight: new Set() }
        const second = scopes.has(scope) && this.#defect !== 'delivers to all'
        scopes.add(scope)
        if (!second) this.#consumers.add(consumer)
        this.#pump()
        return async () => {
          if (this.#defect !== 'goes on') this.#consumers.delete(consumer)
          scopes.delete(scope)
          if (this.#defect !== 'stops at once') await Promise.all(consumer.inFlight)
        }
      },
    }
  }

  #pump(): void {
    setImmediate(() => {
      if (this.#defect !== 'ignores priority') {
        this.#waiting.sort((a, b) => (b.run.priority ?? 0) - (a.run.priority ?? 0))
      }
      for (const waiting of this.#waiting.splice(0)) {
        const fits = [...this.#consumers].filter(
          ({ scope }) => scope === waiting.scope || this.#defect === 'mixes scopes'
        )
        if (fits.length === 0) this.#waiting.push(waiting)
        else if (this.#defect === 'delivers to all')
          for (const one of fits) this.#give(waiting, one)
        else this.#give(waiting, fits[this.#next++ % fits.length])
      }
    })
  }

  #give(waiting: Waiting, { handler, inFlight }: Consumer): void {
    const { run } = waiting
    const given = this.#defect === 'strips' ? { ...run, priority: undefined } : run
    const work = handler(given).catch(() => {
      this.#waiting.push(waiting)
      this.#pump()
    })
    inFlight.add(work)
    void work.finally(() => inFlight.delete(work))
  }
}

runRunDispatchContract('a run queue in memory', async () => {
  const backend = new Backend()
  return { open: () => backend.open(), cleanup: () => {} }
})

test.group('run-queue contract | a queue that', (group) => {
  group.tap((t) => t.timeout(60_000))

  const defects: [Defect, RegExp][] = [
    ['delivers to all', /reaches one consumer/],
    ['mixes scopes', /never reaches another scope/],
    ['stops at once', /stopping waits/],
    ['goes on', /stopping waits/],
    ['strips', /survive the trip/],
    ['ignores priority', /higher priority/],
  ]
  for (const [defect, noticedBy] of defects) {
    test(`${defect} is noticed`, async ({ assert }) => {
      const found = RUN_QUEUE_CASES.find(({ title }) => noticedBy.test(title))!
      const backend = new Backend(defect)
      await assert.rejects(() => found.run({ open: () => backend.open() }))
    })
  }

  test('has no priorities is asked for none', async ({ assert }) => {
    const ran: string[] = []
    const cases: (() => Promise<void>)[] = []
    runRunDispatchContract(
      'no priorities',
      async () => {
        const backend = new Backend('ignores priority')
        return { open: () => backend.open(), cleanup: () => {}, supportsPriority: false }
      },
      { test: (title, run) => void (ran.push(title), cases.push(run)) }
    )
    for (const run of cases) await run()
    assert.lengthOf(ran, RUN_QUEUE_CASES.length)
    assert.equal(ran[0], `no priorities: ${RUN_QUEUE_CASES[0].title}`)
  })
})
