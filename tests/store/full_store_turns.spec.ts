import { test } from '@japa/runner'
import { fullStore, type FullStore } from '../../src/store/full_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { REQUIRED_MEMBERS } from '../../src/store/ports/members.ts'
import type { TurnCommit } from '../../src/store/ports/turn_commits.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import {
  at,
  createHeldRun,
  createRuns,
  makeRow,
  makeRun,
  makeWaiter,
  pendingRow,
  T0,
  takeAllBuffered,
} from '../../src/testing/contracts/state_store/support.ts'
import { expiry, wait } from '../../src/testing/contracts/state_store/turn_waits.ts'
import { requiredOnly } from '../conformance/required_only.ts'

const DAY = 24 * 60 * 60 * 1000
const READS = ['getRun', 'getCheckpoint', 'listSignalWaiters']

/** A store of required members whose calls are written down, with some members replaced. */
function stripped(members: (store: InMemoryStateStore) => Partial<StateStore> = () => ({})) {
  const inner = new InMemoryStateStore()
  const calls: string[] = []
  const base: StateStore = { ...requiredOnly(inner), ...members(inner) }
  const logged: Record<string, unknown> = { ...base }
  for (const name of REQUIRED_MEMBERS) {
    logged[name] = (...args: never[]) => {
      calls.push(name)
      return (base[name] as (...args: never[]) => unknown)(...args)
    }
  }
  const full = fullStore(logged as unknown as StateStore)
  const writes = () => calls.filter((name) => !READS.includes(name))
  return { inner, full, writes }
}

const commit = (full: FullStore, fields: Partial<TurnCommit>) =>
  full.commitTurn({ runId: 'r', owner: 'me', turn: 1, nowMs: T0, ...fields })

const complete = (): Partial<TurnCommit> => ({
  runs: [makeRun('r~1', { input: 'next' })],
  settle: { status: 'completed', patch: {} },
})

const failing = async (): Promise<never> => {
  throw new Error('down')
}

const thrownBy = (work: Promise<unknown>) => work.catch((error: unknown) => error)

test.group('fullStore | a commit made of single writes', () => {
  test('writes rows, waits, expiries, runs, stamps, and the end last', async ({ assert }) => {
    const { full, inner, writes } = stripped()
    await createHeldRun(inner, 'r')
    await inner.saveCheckpoint(makeRow('r', 9))
    const verdict = await commit(full, {
      stamps: [{ seq: 9, order: 0 }],
      runs: [makeRun('child')],
      expiries: [expiry('old', 3)],
      waits: [wait('new', 1)],
      rows: [{ row: pendingRow('r', 0) }],
      settle: { status: 'suspended', patch: { wakeAt: T0 + 5 } },
    })
    assert.isTrue(verdict.applied)
    assert.deepEqual(writes(), [
      'saveCheckpoint',
      'takeBufferedSignal',
      'putSignalWaiter',
      'takeBufferedSignal',
      'removeSignalWaiter',
      'saveCheckpoint',
      'createRun',
      'saveCheckpoint',
      'updateRunIf',
      'releaseRunLock',
    ])
  })

  test('a commit that may not apply writes nothing at all', async ({ assert }) => {
    const { full, inner, writes } = stripped()
    await createHeldRun(inner, 'r')
    await commit(full, { owner: 'other', ...complete(), rows: [{ row: makeRow('r', 0) }] })
    await commit(full, { turn: 2, ...complete() })
    assert.deepEqual(writes(), [])
  })

  test('a store that does not keep turn numbers is believed', async ({ assert }) => {
    const { full, inner } = stripped((store) => ({
      getRun: async (id) => {
        const run = await store.getRun(id)
        if (run) delete run.turns
        return run
      },
    }))
    await createHeldRun(inner, 'r', { turns: 7 })
    assert.propertyVal(await commit(full, { turn: 3 }), 'applied', true)
    assert.propertyVal(await commit(full, { owner: 'other' }), 'applied', false)
  })

  test('a result that lands while an open row is rewritten stays, and is told', async ({
    assert,
  }) => {
    const result = makeRow('r', 0, { output: 'result' })
    const { full, inner } = stripped((store) => ({
      saveCheckpointIfPending: async () => {
        await store.saveCheckpoint(result)
        return false
      },
    }))
    await createHeldRun(inner, 'r')
    await inner.saveCheckpoint(pendingRow('r', 0))
    const verdict = await commit(full, { rows: [{ row: pendingRow('r', 0, { attempts: 2 }) }] })
    assert.deepEqual(
      verdict.stored.map((row) => row.output),
      ['result']
    )
    assert.propertyVal(await inner.getCheckpoint('r', 0), 'output', 'result')
  })

  test('a lease lost while rows are written ends the turn without its settle', async ({
    assert,
  }) => {
    const { full, inner } = stripped((store) => ({
      saveCheckpoint: async (row) => {
        await store.saveCheckpoint(row)
        await store.updateRun('r', { lockedBy: 'other' })
      },
    }))
    await createHeldRun(inner, 'r')
    const verdict = await commit(full, {
      rows: [{ row: makeRow('r', 0) }],
      settle: { status: 'completed', patch: {} },
    })
    assert.deepInclude(verdict, { applied: false, status: 'running', stored: [] })
    assert.deepInclude(await inner.getRun('r'), { status: 'running', lockedBy: 'other' })
  })
})

test.group('fullStore | a wait made of single writes', () => {
  test('a payload buffered before the waiter could be found is taken', async ({ assert }) => {
    const { full, inner } = stripped((store) => ({
      putSignalWaiter: async (waiter) => {
        await store.bufferSignal(waiter.token, 'just now')
        await store.putSignalWaiter(waiter)
      },
    }))
    await createHeldRun(inner, 'r')
    const verdict = await commit(full, { waits: [wait('t', 0)] })
    assert.deepEqual(
      verdict.stored.map((row) => row.output),
      ['just now']
    )
    assert.deepEqual(await inner.listSignalWaiters(''), [])
    assert.deepEqual(await takeAllBuffered(inner, 't'), [])
  })

  test('a payload whose row cannot be written goes back into the buffer', async ({ assert }) => {
    const { full, inner } = stripped(() => ({ saveCheckpoint: failing }))
    await createHeldRun(inner, 'r')
    await inner.bufferSignal('t', 'kept')
    assert.match(String(await thrownBy(commit(full, { waits: [wait('t', 0)] }))), /down/)
    assert.deepEqual(await takeAllBuffered(inner, 't'), ['kept'])
  })

  test('a payload whose position was settled meanwhile goes back into the buffer', async ({
    assert,
  }) => {
    const standing = makeRow('r', 0, { output: 'delivered' })
    const { full, inner } = stripped((store) => ({
      takeBufferedSignal: async (token) => {
        await store.saveCheckpoint(standing)
        return store.takeBufferedSignal(token)
      },
    }))
    await createHeldRun(inner, 'r')
    await inner.bufferSignal('t', 'kept')
    const verdict = await commit(full, { waits: [wait('t', 0)] })
    assert.deepEqual(
      verdict.stored.map((row) => row.output),
      ['delivered']
    )
    assert.deepEqual(await takeAllBuffered(inner, 't'), ['kept'])
  })

  test('a delivery that fails puts its waiter back', async ({ assert }) => {
    const { full, inner } = stripped(() => ({ saveCheckpoint: failing }))
    await createRuns(inner, makeRun('r', { status: 'suspended' }))
    await inner.putSignalWaiter(makeWaiter('t', 'r', 0))
    const delivery = { token: 't', payload: 1, nowMs: T0, buffer: true }
    assert.match(String(await thrownBy(full.deliverSignal(delivery))), /down/)
    assert.lengthOf(await inner.listSignalWaiters('t'), 1)
    assert.deepEqual(await takeAllBuffered(inner, 't'), [])
  })

  test('a second look that fails keeps waiter and payload', async ({ assert }) => {
    const { full, inner } = stripped(() => ({ saveCheckpoint: failing }))
    await createRuns(inner, makeRun('r', { status: 'suspended' }))
    await inner.putSignalWaiter(makeWaiter('t', 'r', 0))
    await inner.bufferSignal('t', 'kept')
    assert.match(String(await thrownBy(full.pairSignal('t', T0))), /down/)
    assert.lengthOf(await inner.listSignalWaiters('t'), 1)
    assert.deepEqual(await takeAllBuffered(inner, 't'), ['kept'])
  })
})

test.group('fullStore | a completion with a successor', () => {
  test('the successor waits until the completion stands', async ({ assert }) => {
    const before: unknown[] = []
    const { full, inner, writes } = stripped((store) => ({
      updateRunIf: async (id, expected, patch) => {
        if (id === 'r') before.push(await store.getRun('r~1'))
        return store.updateRunIf(id, expected, patch)
      },
    }))
    await createHeldRun(inner, 'r')
    assert.propertyVal(await commit(full, complete()), 'applied', true)
    assert.deepInclude(before[0], { status: 'suspended', wakeAt: T0 + DAY, input: 'next' })
    assert.deepInclude(await inner.getRun('r~1'), { status: 'pending' })
    assert.notProperty(await inner.getRun('r~1'), 'wakeAt')
    assert.deepEqual(writes(), ['createRun', 'updateRunIf', 'releaseRunLock', 'updateRunIf'])
  })

  test('a successor that is to wait keeps its own time', async ({ assert }) => {
    const { full, inner } = stripped()
    await createHeldRun(inner, 'r')
    const runs = [makeRun('r~1', { status: 'suspended', wakeAt: T0 + 7 })]
    await commit(full, { ...complete(), runs })
    assert.deepInclude(await inner.getRun('r~1'), { status: 'suspended', wakeAt: T0 + 7 })
  })

  test('a completion that never answered is repeated by the next turn', async ({ assert }) => {
    let down = true
    const { full, inner } = stripped((store) => ({
      updateRunIf: (id, expected, patch) =>
        down ? failing() : store.updateRunIf(id, expected, patch),
    }))
    await createHeldRun(inner, 'r')
    assert.match(String(await thrownBy(commit(full, complete()))), /down/)
    assert.deepInclude(await inner.getRun('r~1'), { status: 'suspended' })
    down = false
    await inner.updateRun('r', { lockedBy: 'next', turns: 2 })
    const again = await commit(full, { ...complete(), owner: 'next', turn: 2 })
    assert.isTrue(again.applied)
    assert.deepInclude(await inner.getRun('r'), { status: 'completed' })
    assert.deepInclude(await inner.getRun('r~1'), { status: 'pending' })
  })

  test('a successor that already runs is left alone', async ({ assert }) => {
    const { full, inner } = stripped()
    await createHeldRun(inner, 'r')
    await inner.createRun(makeRun('r~1', { status: 'suspended', turns: 3, wakeAt: T0 + 44 }))
    await commit(full, complete())
    assert.deepInclude(await inner.getRun('r~1'), { status: 'suspended', wakeAt: T0 + 44 })
  })

  for (const [what, change] of [
    ['was cancelled', { status: 'cancelled' }],
    ['is asked to cancel', { cancelRequestedAt: T0 }],
  ] as const) {
    test(`a completion that loses because the run ${what} cancels the successor`, async ({
      assert,
    }) => {
      const { full, inner } = stripped((store) => ({
        createRun: async (run) => {
          await store.createRun(run)
          await store.updateRun('r', change)
        },
      }))
      await createHeldRun(inner, 'r')
      assert.propertyVal(await commit(full, complete()), 'applied', false)
      assert.deepInclude(await inner.getRun('r~1'), {
        status: 'cancelled',
        error: { message: 'cancelled' },
        updatedAt: at(0),
      })
    })
  }

  test('a completion that loses to a takeover leaves the successor to the new turn', async ({
    assert,
  }) => {
    const { full, inner } = stripped((store) => ({
      createRun: async (run) => {
        await store.createRun(run)
        await store.updateRun('r', { lockedBy: 'new', turns: 2 })
      },
    }))
    await createHeldRun(inner, 'r')
    assert.propertyVal(await commit(full, complete()), 'applied', false)
    assert.deepInclude(await inner.getRun('r~1'), { status: 'suspended', wakeAt: T0 + DAY })
    const next = await commit(full, { ...complete(), owner: 'new', turn: 2 })
    assert.isTrue(next.applied)
    assert.deepInclude(await inner.getRun('r~1'), { status: 'pending' })
  })

  test('a create that fails although the id is new rejects', async ({ assert }) => {
    const { full, inner } = stripped(() => ({ createRun: failing }))
    await createHeldRun(inner, 'r')
    const insert = commit(full, { runs: [makeRun('child')] })
    assert.match(String(await thrownBy(insert)), /down/)
    assert.deepInclude(await inner.getRun('r'), { status: 'running', lockedBy: 'me' })
  })
})

test.group('fullStore | admission by a scan', () => {
  const KEY = 'singleton:k'
  const claim = { workflow: 'orders', tag: KEY, limit: 1, retryAt: T0 + 9, nowMs: T0 + 1 }
  const contender = (id: string, ms: number, tags = [KEY]) =>
    makeRun(id, { status: 'running', createdAt: at(ms), tags })

  test('the oldest that began are admitted, the others parked', async ({ assert }) => {
    const { full, inner } = stripped()
    await createRuns(inner, contender('b', 2), contender('a', 1), contender('c', 3))
    assert.deepEqual(await full.tryAdmitSingleton({ ...claim, runId: 'a' }), { admitted: true })
    const two = { ...claim, limit: 2 }
    assert.deepEqual(await full.tryAdmitSingleton({ ...two, runId: 'b' }), { admitted: true })
    assert.deepEqual(await full.tryAdmitSingleton({ ...two, runId: 'c' }), {
      admitted: false,
      status: 'suspended',
    })
    assert.deepInclude(await inner.getRun('c'), {
      status: 'suspended',
      wakeAt: T0 + 9,
      tags: [KEY],
      updatedAt: at(1),
    })
  })

  test('a store that does not filter by tag is filtered here', async ({ assert }) => {
    const { full, inner } = stripped((store) => ({
      listRuns: ({ tag, ...query }) => store.listRuns(query),
    }))
    await createRuns(inner, contender('a', 1, ['singleton:other']), contender('b', 2))
    assert.deepEqual(await full.tryAdmitSingleton({ ...claim, runId: 'b' }), { admitted: true })
  })

  test('a run that ended while it was judged is not parked', async ({ assert }) => {
    const { full, inner } = stripped((store) => ({
      listRuns: async (query) => {
        const runs = await store.listRuns(query)
        await store.updateRun('b', { status: 'cancelled' })
        return runs
      },
    }))
    await createRuns(inner, contender('a', 1), contender('b', 2))
    assert.deepEqual(await full.tryAdmitSingleton({ ...claim, runId: 'b' }), {
      admitted: false,
      status: 'cancelled',
    })
    assert.deepEqual(await full.tryAdmitSingleton({ ...claim, runId: 'b' }), {
      admitted: false,
      status: 'cancelled',
    })
    assert.deepEqual(await full.tryAdmitSingleton({ ...claim, runId: 'nobody' }), {
      admitted: false,
      status: null,
    })
  })
})
