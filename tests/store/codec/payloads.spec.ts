/*
 * What the codec is given, what coverage means for rows old and new, and what happens to a payload that
 * cannot be encoded or decoded.
 */
import { test } from '@japa/runner'
import { PayloadCodecError } from '../../../src/errors.ts'
import { CodecStateStore, type PayloadCodec } from '../../../src/store/codec/codec_store.ts'
import { fullStore } from '../../../src/store/full_store.ts'
import { InMemoryStateStore } from '../../../src/store/memory/memory_store.ts'
import type { StepCheckpoint } from '../../../src/types/checkpoint.ts'
import type { WorkflowRun } from '../../../src/types/run.ts'
import { requiredOnly } from '../../conformance/required_only.ts'
import { aesCodec } from '../../helpers/codecs.ts'

const run = (more: Partial<WorkflowRun> = {}): WorkflowRun => ({
  id: 'r',
  workflow: 'w',
  workflowVersion: '1',
  status: 'pending',
  input: 'secret',
  createdAt: new Date(1),
  updatedAt: new Date(1),
  ...more,
})

const row = (more: Partial<StepCheckpoint> = {}): StepCheckpoint => ({
  runId: 'r',
  seq: 3,
  name: 'n',
  kind: 'local',
  stepId: 'r:3',
  status: 'completed',
  output: 'secret',
  attempts: 1,
  enqueuedAt: new Date(1),
  startedAt: new Date(1),
  finishedAt: new Date(1),
  ...more,
})

const VALUES = [null, 0, '', false, [], {}, 'é\u0000👍', { iv: 'x', tag: 'y', body: 'z' }]

test.group('codec store | payloads', () => {
  test('every JSON value comes back as it was, and is not in the inner store', async ({
    assert,
  }) => {
    const inner = new InMemoryStateStore()
    const store = new CodecStateStore(inner, aesCodec())
    for (const [i, value] of VALUES.entries()) {
      await store.createRun(run({ id: `r${i}`, input: value, output: value }))
      assert.deepInclude(await store.getRun(`r${i}`), { input: value, output: value })
      assert.notDeepEqual((await inner.getRun(`r${i}`))!.input, value)
    }
  })

  test('undefined never reaches the codec and stays absent; null does reach it', async ({
    assert,
  }) => {
    const seen: unknown[] = []
    const noting: PayloadCodec = {
      encode: (value) => (seen.push(value), { value }),
      decode: (value) => (seen.push(value), (value as { value: unknown }).value),
    }
    const store = new CodecStateStore(new InMemoryStateStore(), noting, { coverage: 'extended' })
    await store.createRun(run({ input: undefined }))
    await store.updateRun('r', { output: undefined, error: undefined })
    await store.saveCheckpoint(row({ output: undefined }))
    await store.bufferSignal('t', undefined)
    assert.isFalse('input' in (await store.getRun('r'))!)
    assert.isUndefined((await store.getCheckpoint('r', 3))!.output)
    assert.deepEqual(await store.takeBufferedSignal('t'), { payload: undefined })
    assert.deepEqual(seen, [])
    await store.updateRun('r', { output: null })
    assert.isNull((await store.getRun('r'))!.output)
    assert.deepEqual(seen, [null, { value: null }])
  })

  test('rows of a lower and of a higher coverage are read', async ({ assert }) => {
    const inner = new InMemoryStateStore()
    const codec = aesCodec()
    const basic = new CodecStateStore(inner, codec)
    const extended = new CodecStateStore(inner, codec, { coverage: 'extended' })
    const open = { error: { message: 'secret' }, events: [{ at: 1, level: 'info', message: 'x' }] }
    for (const [i, store] of [basic, extended].entries()) {
      await store.createRun(run({ id: `r${i}`, error: open.error }))
      await store.saveCheckpoint(row({ runId: `r${i}`, ...(open as object) }))
      await store.recordStepHeartbeat(`r${i}`, 3, new Date(2), { done: 'secret' })
    }
    for (const store of [basic, extended]) {
      for (const id of ['r0', 'r1']) {
        assert.deepEqual((await store.getRun(id))!.error, open.error)
        const found = await store.getCheckpoint(id, 3)
        assert.deepInclude(found, { ...open, heartbeatProgress: { done: 'secret' } } as object)
      }
    }
    const stored = async (id: string) =>
      JSON.stringify([await inner.getRun(id), await inner.getCheckpoint(id, 3)])
    assert.include(await stored('r0'), 'secret')
    assert.notInclude(await stored('r1'), 'secret')
  })

  test('the wrapper tells of a value that cannot be encoded, and writes nothing', async ({
    assert,
  }) => {
    const inner = new InMemoryStateStore()
    const store = new CodecStateStore(inner, aesCodec())
    await assert.rejects(
      () => store.createRun(run({ input: 1n })),
      /^run r: the input cannot be encoded by the payload codec: .*BigInt/
    )
    assert.isNull(await inner.getRun('r'))
    const silent = new CodecStateStore(inner, { encode: () => undefined, decode: (one) => one })
    await assert.rejects(() => silent.createRun(run()), /encode answered undefined/)
    await assert.rejects(() => silent.bufferSignal('t', 1), /^signal "t": the payload cannot/)
  })

  test('a rotated key reads what older keys sealed', async ({ assert }) => {
    const keys: Record<string, PayloadCodec> = { old: aesCodec(), new: aesCodec() }
    const rotating = (newest: string): PayloadCodec => ({
      encode: (value) => ({ kid: newest, sealed: keys[newest].encode(value) }),
      decode: (value) => {
        const { kid, sealed } = value as { kid: string; sealed: unknown }
        return keys[kid].decode(sealed)
      },
    })
    const inner = new InMemoryStateStore()
    await new CodecStateStore(inner, rotating('old')).createRun(run())
    const store = new CodecStateStore(inner, rotating('new'))
    await store.updateRun('r', { output: 'also' })
    assert.deepInclude(await store.getRun('r'), { input: 'secret', output: 'also' })
    assert.deepInclude((await inner.getRun('r'))!.output, { kid: 'new' })
  })
})

test.group('codec store | a wrong key', () => {
  const wrong = async () => {
    const inner = new InMemoryStateStore()
    const right = new CodecStateStore(inner, aesCodec())
    const store = new CodecStateStore(inner, aesCodec())
    await right.createRun(run())
    await right.saveCheckpoint(row())
    return { inner, right, store }
  }

  test('a read rejects, and says where', async ({ assert }) => {
    const { store } = await wrong()
    const caught = async (read: Promise<unknown>) => read.catch((error: unknown) => error)
    const ofRun = (await caught(store.getRun('r'))) as PayloadCodecError
    assert.instanceOf(ofRun, PayloadCodecError)
    assert.match(ofRun.message, /^run r: the input cannot be decoded by the payload codec: /)
    assert.deepInclude({ ...ofRun }, { runId: 'r', seq: undefined, code: 'payload_codec' })
    assert.instanceOf(ofRun.cause, Error)
    for (const read of [
      store.getCheckpoint('r', 3),
      store.listCheckpoints('r'),
      store.listCheckpointsForReplay!('r'),
      store.getLatestCheckpointByName('r', 'n'),
    ]) {
      const error = (await caught(read)) as PayloadCodecError
      assert.match(error.message, /^run r, position 3: the output cannot be decoded/)
      assert.deepInclude({ ...error }, { runId: 'r', seq: 3 })
    }
    await assert.rejects(() => store.listRuns({}), /^run r: /)
    assert.equal(await store.countRuns({}), 1)
  })

  test('a poll for due work answers the run without what cannot be read', async ({ assert }) => {
    const { store } = await wrong()
    await store.createRun(run({ id: 's', input: 'mine' }))
    const due = await store.listPendingRuns(10)
    assert.deepEqual(
      due.map(({ id, input }) => [id, input]),
      [
        ['r', undefined],
        ['s', 'mine'],
      ]
    )
  })

  test('a claim stands, and says that the run is unreadable', async ({ assert }) => {
    const { store, inner } = await wrong()
    await store.createRun(run({ id: 's', input: 'mine' }))
    const lease = { owner: 'o', leaseUntilMs: 100, nowMs: 10 }
    const [first, second] = await store.claimDueRuns!({ ...lease, kind: 'pending', limit: 10 })
    assert.equal(first.run.id, 'r')
    assert.instanceOf(first.unreadable, PayloadCodecError)
    assert.deepInclude(second.run, { id: 's', input: 'mine' })
    assert.isFalse('unreadable' in second)
    assert.deepInclude(await inner.getRun('r'), { status: 'running', lockedBy: 'o' })
    assert.isNull(await store.claimRun!({ ...lease, runId: 'none', from: ['pending'] }))
  })

  test('a signal that was taken and cannot be read is put back', async ({ assert }) => {
    const { store, right } = await wrong()
    await right.bufferSignal('t', 'kept')
    await assert.rejects(() => store.takeBufferedSignal('t'), /^signal "t": the payload cannot/)
    assert.deepEqual(await right.takeBufferedSignal('t'), { payload: 'kept' })
  })

  test('without claims of its own, one run does not hold up those behind it', async ({
    assert,
  }) => {
    const inner = new InMemoryStateStore()
    await new CodecStateStore(inner, aesCodec()).createRun(run())
    const store = fullStore(new CodecStateStore(requiredOnly(inner), aesCodec()))
    await store.createRun(run({ id: 's' }))
    const claim = { kind: 'pending', owner: 'o', leaseUntilMs: 100, nowMs: 10, limit: 10 } as const
    const claimed = await store.claimDueRuns(claim)
    assert.deepEqual(
      claimed.map((one) => one.run.id),
      ['s']
    )
    await assert.rejects(() => store.claimDueRuns(claim), /^run r: the input/)
    assert.deepInclude(await inner.getRun('r'), { status: 'pending' })
    assert.isUndefined((await inner.getRun('r'))!.lockedBy)
  })
})
