/*
 * Contract: waiters that follow a chain to its next link.
 */
import assert from 'node:assert/strict'
import type { TurnCommit } from '../../../store/ports/turn_commits.ts'
import { child, told } from './children.ts'
import {
  at,
  byText,
  createHeldRun,
  createRuns,
  makeRun,
  makeWaiter,
  matches,
  range,
  same,
  T0,
  tokens,
  type StoreCase,
  type StoreUnderTest,
} from './support.ts'
import { commit } from './turn_commits.ts'
import { wait } from './turn_waits.ts'

const ROUNDS = range(1, 12)

/** A waiter of a parent on a link of a chain. */
const onLink = (token: string, fields = {}) =>
  makeWaiter(token, 'parent', 4, { parallelGroup: 'all:2', createdAt: at(3), ...fields })

const moveOn = (store: StoreUnderTest, fields: Partial<TurnCommit> = {}) =>
  commit(store, {
    runs: [makeRun('r~1')],
    settle: {
      status: 'completed',
      patch: {},
      rekey: { from: 'child:r', to: 'child:r~1' },
    },
    ...fields,
  })

export const CHAIN_CASES: StoreCase[] = [
  {
    name: 'the hand-over of a chain moves its waiter to the next link, with all it carries',
    requires: ['commitTurn', 'deliverSignal'],
    async run(store) {
      await createHeldRun(store, 'r')
      await createRuns(store, makeRun('parent', { status: 'suspended' }))
      await store.putSignalWaiter(onLink('child:r'))
      await store.putSignalWaiter(makeWaiter('child:r2', 'parent', 5))
      matches(await moveOn(store), { applied: true, status: 'completed' })
      assert.deepEqual(tokens(await store.listSignalWaiters('')), ['child:r2', 'child:r~1'])
      same(await store.listSignalWaiters('child:r~'), [onLink('child:r~1')])
      matches(await store.getRun('parent'), { wakeRequestedAt: undefined })
      const late = { token: 'child:r', payload: 0, nowMs: T0, buffer: false }
      same(await store.deliverSignal(late), { delivered: false, buffered: false })
      const news = { token: 'child:r~1', payload: 1, nowMs: T0, buffer: false }
      same(await store.deliverSignal(news), { delivered: true, runId: 'parent', seq: 4 })
      matches(await store.getCheckpoint('parent', 4), { output: 1, parallelGroup: 'all:2' })
    },
  },
  {
    name: 'a moved waiter replaces the one that waits on the next link already',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      await store.putSignalWaiter(onLink('child:r'))
      await store.putSignalWaiter(makeWaiter('child:r~1', 'other', 9, { createdAt: at(1) }))
      await moveOn(store)
      same(await store.listSignalWaiters(''), [onLink('child:r~1')])
    },
  },
  {
    name: 'a hand-over that nobody waits for moves nothing',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r')
      const others = [makeWaiter('child:r~1', 'other', 9), makeWaiter('child:s', 'other', 8)]
      for (const waiter of others) await store.putSignalWaiter(waiter)
      matches(await moveOn(store), { applied: true })
      const waiters = await store.listSignalWaiters('')
      same(
        waiters.sort((a, b) => byText(a.token, b.token)),
        others
      )
    },
  },
  {
    name: 'a hand-over that is refused moves nothing',
    requires: ['commitTurn'],
    async run(store) {
      await createHeldRun(store, 'r', { cancelRequestedAt: T0 })
      await store.putSignalWaiter(onLink('child:r'))
      matches(await moveOn(store), { applied: false })
      matches(await moveOn(store, { owner: 'other' }), { applied: false })
      same(await store.listSignalWaiters(''), [onLink('child:r')])
    },
  },
  {
    name: 'a link that hands over and a parent that begins to wait at once: the waiter follows',
    requires: ['commitTurn'],
    async run(store) {
      await Promise.all(
        ROUNDS.map(async (n) => {
          const [parent, id] = [`p${n}`, `kid-${n}.`]
          await createHeldRun(store, parent)
          await createHeldRun(store, id)
          const [verdict, handedOver] = await Promise.all([
            commit(store, {
              runId: parent,
              waits: [wait(`child:${id}`, 0, parent)],
              children: [child(id)],
            }),
            moveOn(store, {
              runId: id,
              runs: [makeRun(`${id}~1`)],
              settle: {
                status: 'completed',
                patch: {},
                rekey: { from: `child:${id}`, to: `child:${id}~1` },
              },
            }),
          ])
          assert.ok(verdict.applied && handedOver.applied)
          const [state] = told(verdict)!
          const [waiter] = await store.listSignalWaiters(`child:${id}`)
          // Told that the link is over, the parent follows by itself.
          if (state.status !== 'completed') assert.equal(waiter.token, `child:${id}~1`)
          assert.deepEqual([waiter.runId, waiter.seq], [parent, 0])
        })
      )
    },
  },
]
