/*
 * What the calls of the smaller roles send: schedules, fans, views, admission, hints.
 */
import type { LucidStateStore } from '../../../src/store/lucid/lucid_store.ts'
import type { Dialect } from '../../helpers/databases.ts'
import { at, heldRun, makeRow, makeRun, makeWait, ms } from './support.ts'

export interface Budget {
  name: string
  statements: number | Record<Dialect, number>
  prepare?: (store: LucidStateStore) => Promise<unknown>
  call: (store: LucidStateStore) => Promise<unknown>
}

const held = (store: LucidStateStore) => store.createRun(heldRun('r'))

const schedule = {
  id: 's',
  workflow: 'orders',
  spec: { everyMs: 5 },
  paused: false,
  createdAt: at(0),
  updatedAt: at(0),
}

const childWaits = (count: number) =>
  Array.from({ length: count }, (_, seq) => {
    const { waiter, row } = makeWait('r', seq, `child:r.child.${seq}`)
    return { waiter, checkpoint: { ...row, status: 'running' as const } }
  })

const KEY = 'singleton:shop:A'

/** A run of the key in the queue of many. */
const contender = (id: string, place: number) =>
  makeRun(id, { createdAt: at(place), tags: [KEY, 'durable:singleton:tracked'] })
const queue = async (store: LucidStateStore) => {
  for (let place = 0; place < 30; place++) await store.createRun(contender(`r${place}`, place))
}
const admit = (store: LucidStateStore, runId: string) =>
  store.tryAdmitSingleton({
    runId,
    workflow: 'orders',
    tag: KEY,
    limit: 1,
    retryAt: ms(99),
    nowMs: ms(1),
  })

export const ROLE_BUDGETS: Budget[] = [
  { name: 'createSchedule', statements: 1, call: (s) => s.createSchedule(schedule) },
  { name: 'createSchedule, taken', statements: 1, call: (s) => s.createSchedule(schedule) },
  { name: 'updateSchedule', statements: 1, call: (s) => s.updateSchedule('s', { paused: true }) },
  { name: 'updateSchedule of nothing', statements: 1, call: (s) => s.updateSchedule('s', {}) },
  { name: 'getSchedule', statements: 1, call: (s) => s.getSchedule('s') },
  { name: 'listSchedules', statements: 1, call: (s) => s.listSchedules({ paused: false }) },
  { name: 'deleteSchedule', statements: 1, call: (s) => s.deleteSchedule('s') },
  {
    name: 'registerChildWaits',
    statements: { postgres: 5, sqlite: 4, mysql: 6 },
    prepare: held,
    call: (s) => s.registerChildWaits(childWaits(700)),
  },
  {
    name: 'registerChildWaits, everything settled',
    statements: { postgres: 4, sqlite: 3, mysql: 4 },
    prepare: async (s) => {
      await held(s)
      await s.saveCheckpoint(makeRow('r', 0))
    },
    call: (s) => s.registerChildWaits(childWaits(1)),
  },
  { name: 'registerChildWaits of none', statements: 0, call: (s) => s.registerChildWaits([]) },
  {
    name: 'getRun through a view',
    statements: 1,
    call: (s) => s.withScope({ namespace: 'acme' }).getRun('r'),
  },
  {
    name: 'listRuns through a view that sees nothing',
    statements: 0,
    call: (s) => s.withScope({ namespace: 'acme' }).listRuns({ namespace: 'globex' }),
  },
  {
    name: 'tryAdmitSingleton, admitted',
    statements: { postgres: 6, sqlite: 5, mysql: 5 },
    prepare: queue,
    call: (s) => admit(s, 'r0'),
  },
  {
    name: 'tryAdmitSingleton, behind a long queue',
    statements: { postgres: 6, sqlite: 5, mysql: 5 },
    prepare: queue,
    call: (s) => admit(s, 'r29'),
  },
  {
    name: 'tryAdmitSingleton, a holder confirmed',
    statements: 1,
    prepare: async (s) => {
      await queue(s)
      await admit(s, 'r0')
    },
    call: (s) => admit(s, 'r0'),
  },
  { name: 'tryAdmitSingleton of nobody', statements: 1, call: (s) => admit(s, 'nobody') },
  {
    name: 'notifyWake',
    statements: { postgres: 1, sqlite: 0, mysql: 0 },
    call: async (s) => s.notifyWake?.({ namespace: 'acme', runIds: ['a', 'b'] }),
  },
]
