import { test } from '@japa/runner'
import {
  SINGLETON_ADMITTED,
  SINGLETON_TRACKED,
  singletonAdmissionDenialPatch,
  singletonAdmissionTags,
  withoutSingletonMarkers,
} from '../../../src/store/ports/singleton_rules.ts'
import { at, makeRun, T0 } from '../../../src/testing/contracts/state_store/support.ts'

const TAG = 'singleton:k'
const claim = { runId: 'b', workflow: 'orders', tag: TAG, limit: 1, retryAt: T0 + 9, nowMs: T0 }
const tracked = { tags: [TAG, SINGLETON_TRACKED], turns: 1 }

test.group('singleton rules', () => {
  test('tags without markers are returned as they are', ({ assert }) => {
    const tags = ['user', TAG]
    assert.strictEqual(withoutSingletonMarkers(tags), tags)
    assert.isUndefined(withoutSingletonMarkers(undefined))
    assert.deepEqual(
      withoutSingletonMarkers([SINGLETON_ADMITTED, ...tags, SINGLETON_TRACKED]),
      tags
    )
  })

  test('rows of another key, another workflow or an ended run do not compete', ({ assert }) => {
    const rows = [
      makeRun('a', { ...tracked, status: 'completed' }),
      makeRun('a2', { ...tracked, workflow: 'other', status: 'running' }),
      makeRun('a3', { tags: ['singleton:k2', SINGLETON_ADMITTED], status: 'running' }),
      makeRun('b', { ...tracked, status: 'running', createdAt: at(5) }),
    ]
    assert.deepEqual(singletonAdmissionTags(rows, claim), [
      TAG,
      SINGLETON_TRACKED,
      SINGLETON_ADMITTED,
    ])
  })

  test('a claimant that is not among the rows, or ended, is not admitted', ({ assert }) => {
    assert.isUndefined(singletonAdmissionTags([], claim))
    const ended = makeRun('b', { ...tracked, status: 'cancelled' })
    assert.isUndefined(singletonAdmissionTags([ended], claim))
    assert.isUndefined(singletonAdmissionDenialPatch(ended, claim))
  })

  test('a denial parks until the retry and tracks the run once', ({ assert }) => {
    const run = makeRun('b', { ...tracked, status: 'running' })
    assert.deepEqual(singletonAdmissionDenialPatch(run, claim), {
      status: 'suspended',
      wakeAt: T0 + 9,
      tags: [TAG, SINGLETON_TRACKED],
      updatedAt: new Date(T0),
    })
  })

  test('more holders than the limit admit nobody else', ({ assert }) => {
    const holder = (id: string) =>
      makeRun(id, { tags: [TAG, SINGLETON_ADMITTED], status: 'suspended', turns: 1 })
    const own = makeRun('b', { ...tracked, status: 'running' })
    assert.isUndefined(singletonAdmissionTags([holder('x'), holder('y'), own], claim))
  })
})
