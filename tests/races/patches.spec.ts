/*
 * Patches that clear: what a patch names as undefined is gone from the row, what it does not name stays,
 * whichever write carries it.
 */
import { test } from '@japa/runner'
import type { FullStore } from '../../src/store/full_store.ts'
import type { WorkflowRun } from '../../src/types/run.ts'
import { storesUnderTest, T0, useWorld } from '../helpers/engines.ts'

/** Everything that some write of an engine clears. */
const CLEARED = {
  error: { message: 'old' },
  output: { n: 1 },
  wakeAt: T0 + 1,
  wakeRequestedAt: T0 + 2,
  cancelRequestedAt: T0 + 3,
  cancelCompensates: true,
  cancelRequestedBy: 'support',
  recoveryAttempts: 2,
  deadlineAt: T0 + 4,
  tags: ['eu'],
} satisfies Partial<WorkflowRun>
const KEYS = Object.keys(CLEARED) as (keyof typeof CLEARED)[]

type Write = (store: FullStore, patch: Partial<WorkflowRun>) => Promise<unknown>

const WRITES: Record<string, Write> = {
  updateRun: (store, patch) => store.updateRun('r', patch),
  updateRunIf: (store, patch) => store.updateRunIf('r', ['running'], patch),
  commitTurn: (store, patch) =>
    store.commitTurn({
      runId: 'r',
      owner: 'me',
      turn: 1,
      nowMs: T0,
      settle: { status: 'suspended', evenIfCancelRequested: true, patch },
    }),
}

/** Written by others than the holder of the lease only. */
const NOT_OF_A_TURN: (keyof WorkflowRun)[] = ['tags', 'wakeRequestedAt']

for (const kind of await storesUnderTest()) {
  test.group(`Patches | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    for (const [name, write] of Object.entries(WRITES)) {
      test(`${name} clears what is undefined and leaves alone what is absent`, async ({
        assert,
      }) => {
        const { store } = world
        for (const key of KEYS) {
          if (name === 'commitTurn' && NOT_OF_A_TURN.includes(key)) continue
          await store.createRun({
            id: 'r',
            workflow: 'w',
            workflowVersion: '1',
            status: 'running',
            turns: 1,
            lockedBy: 'me',
            lockedUntil: T0 + 60_000,
            input: null,
            createdAt: new Date(T0),
            updatedAt: new Date(T0),
            ...CLEARED,
          })
          await write(store, { [key]: undefined, priority: 7 })
          const run = await world.run('r')
          assert.isUndefined(run[key], key)
          assert.equal(run.priority, 7)
          for (const other of KEYS) {
            if (other !== key)
              assert.deepEqual(run[other], CLEARED[other], `${other} without ${key}`)
          }
          await store.deleteRun('r')
        }
      }).tags(['@control-54'])
    }
  })
}
