/*
 * Contract: children that a commit begets or joins.
 */
import assert from 'node:assert/strict'
import type { ChildState, TurnCommit, TurnVerdict } from '../../../store/ports/turn_commits.ts'
import type { WorkflowRun } from '../../../types/run.ts'
import {
  at,
  byText,
  createHeldRun,
  createRuns,
  ids,
  makeRow,
  makeRun,
  makeWaiter,
  matches,
  pendingRow,
  range,
  runOf,
  same,
  T0,
  tokens,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'
import { commit } from './turn_commits.ts'
import { wait } from './turn_waits.ts'

const ROUNDS = range(1, 12)

export const child = (id: string, fields: Partial<WorkflowRun> = {}): WorkflowRun =>
  makeRun(id, { awaited: true, ...fields })

/** The states a verdict tells, by id. */
export const told = (verdict: TurnVerdict): ChildState[] | undefined =>
  verdict.children && [...verdict.children].sort((a, b) => byText(a.id, b.id))

/** Completes a run that `child` executes. */
const end = (store: StoreUnderTest, runId: string, output: unknown) =>
  commit(store, {
    runId,
    owner: 'child',
    settle: { status: 'completed', patch: { output } },
  })

const withAttribute = async (store: StoreUnderTest, key: string) =>
  ids(await store.listRuns({ attributes: [{ key, op: 'eq', value: 1 }] }))

const CHILDREN: StoreCase[] = [
  {
    name: 'a commit inserts children that are awaited, ready to be found, and tells no state of them',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const born = child('a', { searchAttributes: { n: 1 }, namespace: 'acme', priority: 3 })
      const verdict = await commit(store, {
        rows: [{ row: makeRow('r', 0, { status: 'running', kind: 'signal' }) }],
        waits: [wait('child:a', 0)],
        children: [born, child('b')],
      })
      same(verdict, {
        applied: true,
        status: 'running',
        wakeRequested: false,
        cancelRequested: false,
        awaited: false,
        stored: [],
        children: [],
      })
      matches(await store.getRun('a'), born)
      matches(await store.getRun('b'), child('b'))
      assert.deepEqual(ids(await store.listPendingRuns(9)), ['a', 'b'])
      assert.deepEqual(await withAttribute(store, 'n'), ['a'])
      same(await store.listSignalWaiters(''), [makeWaiter('child:a', 'r', 0)])
      matches(await store.getCheckpoint('r', 0), { status: 'running' })
    },
  },
  {
    name: 'a commit without children tells of none',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const verdict = await commit(store, { rows: [{ row: pendingRow('r', 0) }] })
      assert.equal(verdict.children, undefined)
    },
  },
  {
    name: 'a child that exists is marked as awaited and nothing else, and its state is told',
    requires: ['commitTurn'],
    async run(store) {
      const standing = makeRun('a', {
        status: 'running',
        input: 'first',
        lockedBy: 'child',
        lockedUntil: T0 + 9,
        turns: 3,
        wakeRequestedAt: T0 + 4,
        searchAttributes: { own: 1 },
        updatedAt: at(7),
      })
      await createHeldRun(store, 'r')
      await createRuns(store, standing)
      const asked = child('a', { input: 'second', searchAttributes: { own: 2, other: 1 } })
      const verdict = await commit(store, { children: [asked, child('b')] })
      same(told(verdict), [{ id: 'a', status: 'running' }])
      matches(await store.getRun('a'), { ...standing, awaited: true })
      matches(await store.getRun('b'), child('b'))
      assert.deepEqual(await withAttribute(store, 'own'), ['a'])
      assert.deepEqual(await withAttribute(store, 'other'), [])
    },
  },
  {
    name: 'a child that ended is told with its output or its error',
    requires: ['commitTurn'],
    async run(store) {
      const error = { message: 'no', code: 'x', details: { n: 1 } }
      const ended: WorkflowRun[] = [
        makeRun('a', { status: 'completed', output: { n: [1, null] } }),
        makeRun('b', { status: 'completed', output: null }),
        makeRun('c', { status: 'completed' }),
        makeRun('d', { status: 'failed', error }),
        makeRun('e', { status: 'cancelled', error: { message: 'cancelled' } }),
        makeRun('f', { status: 'dead', error }),
      ]
      await createHeldRun(store, 'r')
      await createRuns(store, ...ended)
      const verdict = await commit(store, { children: ended.map(({ id }) => child(id)) })
      same(
        told(verdict),
        ended.map(({ id, status, output, error: failure }) => ({
          id,
          status,
          output,
          error: failure,
        }))
      )
      for (const { id, status } of ended) {
        matches(await store.getRun(id), { status, awaited: true })
      }
    },
  },
  {
    name: 'children and the end of the turn in one commit: their states are told as well',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await createRuns(store, makeRun('a', { status: 'completed', output: 1 }))
      const settle = { status: 'suspended', patch: { wakeAt: T0 + 9 } } as const
      const verdict = await commit(store, { children: [child('a'), child('b')], settle })
      matches(verdict, { applied: true, status: 'suspended' })
      same(told(verdict), [{ id: 'a', status: 'completed', output: 1 }])
      matches(await store.getRun('r'), { status: 'suspended', lockedBy: undefined })
    },
  },
  {
    name: 'children beside entries that meet at a position or a token: their states are told as well',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await createRuns(store, makeRun('a', { status: 'suspended' }))
      const placeholder = { row: makeRow('r', 0, { status: 'running', kind: 'signal' }) }
      const verdict = await commit(store, {
        rows: [placeholder, { row: makeRow('r', 1, { status: 'running', kind: 'signal' }) }],
        waits: [wait('child:a', 0), wait('child:a', 1)],
        children: [child('a')],
        settle: { status: 'suspended', patch: { wakeAt: T0 + 9 } },
      })
      matches(verdict, { applied: true, status: 'suspended' })
      same(told(verdict), [{ id: 'a', status: 'suspended' }])
      same(await store.listSignalWaiters(''), [makeWaiter('child:a', 'r', 1)])
    },
  },
  {
    name: 'a run that one commit starts and awaits is born once and ends awaited',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const verdict = await commit(store, { runs: [makeRun('a')], children: [child('a')] })
      matches(verdict, { applied: true })
      matches(await store.getRun('a'), { status: 'pending', awaited: true })
    },
  },
  {
    name: 'a child that a commit awaits twice is born once, or told once',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const twice = [child('a', { searchAttributes: { n: 1 } }), child('a', { input: 'again' })]
      same(told(await commit(store, { children: twice })), [])
      matches(await store.getRun('a'), twice[0])
      same(told(await commit(store, { children: twice })), [{ id: 'a', status: 'pending' }])
    },
  },
  {
    name: 'a refused commit neither inserts nor marks a child, and tells of none',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { turns: 2, cancelRequestedAt: T0 })
      await createHeldRun(store, 'over', { status: 'completed' })
      await createRuns(store, makeRun('standing'))
      const children = [child('new'), child('standing')]
      const refused: Partial<TurnCommit>[] = [
        { turn: 2, owner: 'other' },
        { turn: 1 },
        { turn: 2, settle: { status: 'completed', patch: {} } },
        { runId: 'over' },
        { runId: 'nobody' },
      ]
      for (const fields of refused) {
        const verdict = await commit(store, { ...fields, children })
        matches(verdict, { applied: false, children: undefined })
        assert.equal(await store.getRun('new'), null)
        matches(await store.getRun('standing'), { awaited: undefined })
      }
    },
  },
  {
    name: 'children sent a second time change nothing, and are told as they are by then',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const fields = { waits: [wait('child:a', 0)], children: [child('a')] }
      await commit(store, fields)
      await store.updateRun('a', { status: 'failed', error: { message: 'no' }, priority: 5 })
      const before = await runOf(store, 'a')
      const verdict = await commit(store, fields)
      same(told(verdict), [{ id: 'a', status: 'failed', error: { message: 'no' } }])
      same(await runOf(store, 'a'), before)
      assert.deepEqual(tokens(await store.listSignalWaiters('')), ['child:a'])
    },
  },
  {
    name: 'a commit may carry more children than one statement holds',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const all = range(1000, 2199).map((n) => `r.all.0.${n}`)
      await createRuns(store, makeRun(all[7], { status: 'completed', output: 7 }))
      const verdict = await commit(store, { children: all.map((id) => child(id)) })
      same(told(verdict), [{ id: all[7], status: 'completed', output: 7 }])
      const born = await store.listPendingRuns(2000)
      assert.deepEqual(ids(born), all.toSpliced(7, 1))
      assert.ok(born.every((run) => run.awaited))
    },
  },
]

const RACES: StoreCase[] = [
  {
    name: 'two parents and a start of one child at once: it is born once and ends awaited',
    requires: ['commitTurn'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const id = `kid-${n}`
          const parents = [`p${n}`, `q${n}`]
          for (const parent of parents) await createHeldRun(store, parent)
          const [first, second, started] = await Promise.all([
            ...parents.map((runId) =>
              commit(store, { runId, children: [child(id, { input: runId })] })
            ),
            store.createRun(makeRun(id, { input: 'start' })).then(
              () => true,
              () => false
            ),
          ] as [Promise<TurnVerdict>, Promise<TurnVerdict>, Promise<boolean>])
          const bornBy = [first, second].map((verdict) => verdict.children?.length === 0)
          assert.equal([...bornBy, started].filter(Boolean).length, 1, 'it is born once')
          const winner = bornBy.includes(true) ? parents[bornBy.indexOf(true)] : 'start'
          matches(await store.getRun(id), { input: winner, awaited: true, status: 'pending' })
        })
      )
    },
  },
  {
    name: 'a child that ends and a parent that begins to wait at once: one sees the other',
    requires: ['commitTurn'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const [parent, id] = [`p${n}`, `kid-${n}`]
          await createHeldRun(store, parent)
          await createHeldRun(store, id, { lockedBy: 'child' })
          const [verdict, ended] = await Promise.all([
            commit(store, {
              runId: parent,
              waits: [wait(`child:${id}`, 0, parent)],
              children: [child(id)],
            }),
            end(store, id, n),
          ])
          assert.ok(verdict.applied && ended.applied)
          const [state] = told(verdict)!
          assert.ok(ended.awaited || state.status === 'completed', 'neither saw the other')
          if (state.status === 'completed') assert.equal(state.output, n)
          matches(await store.getRun(id), { status: 'completed', awaited: true })
        })
      )
    },
  },
]

export const CHILD_CASES: StoreCase[] = [...CHILDREN, ...RACES]
