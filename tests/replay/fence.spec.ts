import { test } from '@japa/runner'
import {
  isWorkflowControlFlowSignal,
  WorkflowSuspended,
} from '../../src/foundation/control_flow.ts'
import { local, machine, remote, sleep } from './machine.ts'

test.group('Replay | suspension and fence', () => {
  test('an unwind rejects every open await with one shared signal that names the earliest deadline', async ({
    assert,
  }) => {
    const caught: unknown[] = []
    const { replay } = await machine([sleep(0, 70), sleep(1, 30)], (ctx) =>
      Promise.all([
        ctx.sleep(70).catch((error) => caught.push(error)),
        ctx.sleep(30).catch((error) => caught.push(error)),
        ctx.step('s', null).catch((error) => caught.push(error)),
      ])
    )
    await replay.unwind()
    assert.lengthOf(caught, 3)
    assert.equal(new Set(caught).size, 1)
    assert.instanceOf(caught[0], WorkflowSuspended)
    assert.isTrue(isWorkflowControlFlowSignal(caught[0]))
    assert.equal((caught[0] as WorkflowSuspended).wakeAt, 30)
  })

  test('what an unwinding body does is not recorded, and its return is no end', async ({
    assert,
  }) => {
    let refused: unknown
    const { replay } = await machine([], async (ctx) => {
      try {
        await ctx.step('s', null)
      } catch {
        await ctx.localStep('cleanup', () => 1).catch((error) => (refused = error))
      }
      return 'as if nothing had happened'
    })
    replay.takeAttention(0)
    await replay.unwind()
    assert.instanceOf(refused, WorkflowSuspended)
    assert.isUndefined(replay.end)
    assert.lengthOf(replay.takeAttention(0), 0)
    assert.equal(replay.position, 1)
  })

  test('branches that a returned body left behind record nothing', async ({ assert }) => {
    let late: Promise<unknown> | undefined
    const { replay } = await machine([remote(0, 'first', { output: 'x' })], async (ctx) => {
      const value = await ctx.step('first', null)
      late = new Promise((resolve) => setImmediate(resolve)).then(() =>
        ctx.localStep('late', () => 1)
      )
      late.catch(() => {})
      return value
    })
    assert.deepEqual(replay.end, { kind: 'returned', value: 'x' })
    const refused = await late!.catch((error: unknown) => error)
    assert.instanceOf(refused, WorkflowSuspended)
    assert.equal(replay.position, 1)
  })

  test('a promise the body dropped is no unhandled rejection', async ({ assert }) => {
    const { replay } = await machine(
      [remote(0, 'bad', { status: 'failed', error: { message: 'no', retryable: false } })],
      async (ctx) => {
        void ctx.step('bad', null)
        void ctx.sleep('nonsense')
        await ctx.sleep(1)
      }
    )
    await replay.unwind()
    assert.isUndefined(replay.end)
  })
})

test.group('Replay | guard', () => {
  test('another name or kind at a position ends the replay with an error that says where', async ({
    assert,
  }) => {
    const { replay } = await machine([local(0, 'charge')], (ctx) =>
      ctx.localStep('refund', () => 1)
    )
    assert.equal(replay.broken?.code, 'non_determinism')
    assert.equal(replay.broken?.seq, 0)
    assert.include(replay.broken?.message ?? '', 'run run, position 0')
    assert.include(replay.broken?.message ?? '', '"charge" (local)')
    assert.include(replay.broken?.message ?? '', '"refund" (local)')
    assert.include(replay.broken?.message ?? '', 'ctx.patched')
    const kind = await machine([local(0, 'x')], (ctx) => ctx.step('x', null))
    assert.equal(kind.replay.broken?.seq, 0)
    const slept = await machine([local(0, 'x')], (ctx) => ctx.sleep(1))
    assert.equal(slept.replay.broken?.seq, 0)
  })

  test('a body that catches the mismatch does not hide it', async ({ assert }) => {
    const { replay } = await machine([local(0, 'a')], async (ctx) => {
      await ctx.localStep('b', () => 1).catch(() => {})
      await ctx.localStep('c', () => 1).catch(() => {})
      return 'fine'
    })
    assert.equal(replay.broken?.seq, 0)
    assert.isUndefined(replay.end)
    assert.lengthOf(replay.takeAttention(0), 0)
  })

  test('a bounded wait takes its deadline position whether or not the payload is there', async ({
    assert,
  }) => {
    const { replay } = await machine([], async (ctx) => {
      void ctx.waitForSignal('a', { timeoutMs: 5 })
      void ctx.waitForSignal('b')
      await ctx.sleep(1)
    })
    assert.equal(replay.position, 4)
  })
})

test.group('Replay | patched', () => {
  test('is true for a run that gets there first, and for its replays', async ({ assert }) => {
    const body = (ctx: { patched(id: string): Promise<boolean> }) => ctx.patched('v2')
    const first = await machine([], body)
    assert.equal(first.replay.takeAttention(0)[0].command.kind, 'mark')
    const again = await machine([local(0, 'patch:v2', { output: true })], body)
    assert.deepEqual(again.replay.end, { kind: 'returned', value: true })
  })

  test('is false for older history, and gives the position back', async ({ assert }) => {
    const { replay } = await machine([remote(0, 'old', { output: 1 })], async (ctx) => {
      const fresh = await ctx.patched('v2')
      return [fresh, await ctx.step('old', null)]
    })
    assert.deepEqual(replay.end, { kind: 'returned', value: [false, 1] })
  })

  test('another marker at the position is a mismatch', async ({ assert }) => {
    const { replay } = await machine([local(0, 'patch:v1', { output: true })], (ctx) =>
      ctx.patched('v2')
    )
    assert.equal(replay.broken?.seq, 0)
  })
})

test.group('Replay | ends', () => {
  test('continueAsNew always throws and ends the body with the next input', async ({ assert }) => {
    const { replay } = await machine([], (ctx) => ctx.continueAsNew({ n: 2 }))
    assert.deepEqual(replay.end, { kind: 'continued', input: { n: 2 } })
  })

  test('the step whose failure ended the body is known', async ({ assert }) => {
    const error = { message: 'declined', code: 'card', retryable: false }
    const { replay } = await machine([remote(0, 'charge', { status: 'failed', error })], (ctx) =>
      ctx.step('charge', null)
    )
    assert.equal(replay.end?.kind, 'threw')
    const thrown = (replay.end as { error: Error & { code?: string } }).error
    assert.equal(thrown.code, 'card')
    assert.deepEqual(replay.stepOf(thrown), { seq: 0, name: 'charge' })
    assert.isUndefined(replay.stepOf(new Error('else')))
  })
})
