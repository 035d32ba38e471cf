/*
 * What the outside does for a run of each kind, and what the run must have come to.
 */
import type { RunStatus } from '../../src/types/run.ts'
import type { Outside } from './outside.ts'
import { type Job, MEMBERS_OF_FAMILY, WIDTH_OF_FAN } from './workflows.ts'

export interface Expected {
  status: RunStatus
  /** Absent where the run has none. */
  output?: unknown
  /** Ledger lines of the run, each once; in any order. */
  once: string[]
  /** Undos that ran at least once. */
  undone?: string[]
}

export interface Kind {
  name: string
  /** Of so many runs of the mix. */
  share: number
  /** What the outside does for a run that was started; it is repeated by nobody. */
  drive?(outside: Outside, runId: string, job: Job): Promise<void>
  expected(job: Job, runId: string, version: string): Expected
}

const sumTo = (count: number) => (count * (count - 1)) / 2
const inside = (job: Job): Expected => ({
  status: 'completed',
  output: job.n,
  once: ['enter', 'leave'],
})

export const KINDS: readonly Kind[] = [
  {
    name: 'order',
    share: 4,
    expected: (job, _runId, version) => ({
      status: 'completed',
      output: 3 * job.n,
      once: version === '2' ? ['charge', 'insure', 'mail'] : ['charge', 'mail'],
    }),
  },
  {
    name: 'approval',
    share: 2,
    async drive(outside, runId, job) {
      await outside.call('signal', [`approve:${runId}`, job.n + 1])
      await outside.pause(job.pause)
      await outside.call('update', [runId, 'amend', job.n + 2])
      await outside.pause(job.pause)
      await outside.call('completeTask', [runId, 'print', job.n + 3])
    },
    expected: ({ n }) => ({
      status: 'completed',
      output: [n, n + 1, n + 2, n + 3],
      once: ['approved', 'printed'],
    }),
  },
  {
    name: 'listener',
    share: 2,
    async drive(outside, runId, job) {
      if (job.n % 2 === 0) await outside.pause(job.pause)
      await outside.call('publishEvent', ['parcel', { of: runId }, { id: runId }])
    },
    expected: (_job, runId) => ({ status: 'completed', output: runId, once: ['received'] }),
  },
  {
    name: 'saga',
    share: 2,
    expected: () => ({ status: 'failed', once: ['hold'], undone: ['reserve', 'pack'] }),
  },
  {
    name: 'cancelled',
    share: 1,
    async drive(outside, runId, job) {
      await outside.pause(job.pause)
      await outside.call('cancel', [runId, { compensate: true }])
    },
    // How far it came when it was cancelled is nobody's promise.
    expected: () => ({ status: 'cancelled', once: [] }),
  },
  {
    name: 'family',
    share: 1,
    expected: () => ({
      status: 'completed',
      output: sumTo(MEMBERS_OF_FAMILY) + 100,
      once: ['family'],
    }),
  },
  {
    name: 'fan',
    share: 2,
    expected: ({ n }) => ({
      status: 'completed',
      output: 2 * (WIDTH_OF_FAN * n + sumTo(WIDTH_OF_FAN)),
      once: ['fan'],
    }),
  },
  {
    name: 'print',
    share: 2,
    expected: ({ n }) => ({ status: 'completed', output: 2 * (3 * n + 6), once: ['print'] }),
  },
  {
    name: 'chain',
    share: 1,
    // What its links book is counted over all of them.
    expected: () => ({ status: 'completed', once: ['link 1'] }),
  },
  { name: 'guest', share: 3, expected: inside },
  { name: 'render', share: 3, expected: inside },
  {
    name: 'deposit',
    share: 2,
    expected: () => ({ status: 'completed', output: true, once: ['deposit'] }),
  },
]
