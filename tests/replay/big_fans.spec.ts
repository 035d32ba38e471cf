/*
 * What a fan's readings cost, counted: however its members end, looking up rows is linear in their number.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import { History } from '../../src/replay/history.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { machine, remote } from './machine.ts'

const STEP = defineStep('member', (input: number) => input)
const LOOKUPS_A_MEMBER = 8

class CountingHistory extends History {
  lookups = 0

  override at(seq: number) {
    this.lookups += 1
    return super.at(seq)
  }
}

const orders = {
  'the first member first': (n: number) => Array.from({ length: n }, (_, i) => i),
  'the last member first': (n: number) => Array.from({ length: n }, (_, i) => n - 1 - i),
}

test.group('Replay | big fans', () => {
  for (const [name, order] of Object.entries(orders)) {
    for (const n of [100, 1_000, 10_000]) {
      test(`${n} members that end one by one, ${name}`, async ({ assert }) => {
        const pending = Array.from({ length: n }, (_, i) =>
          remote(i, 'member', { status: 'pending', wakeAt: 1_000_000 + i })
        )
        const history = new CountingHistory(pending)
        const body = (ctx: WorkflowCtx) =>
          ctx.all(
            STEP,
            order(n).sort((a, b) => a - b)
          )
        const { replay, settle } = await machine(history, body)
        history.lookups = 0
        for (const seq of order(n)) {
          assert.isUndefined(replay.end)
          replay.changed(replay.history.merge([remote(seq, 'member', { output: seq })]))
          replay.takeAttention(0)
        }
        await settle()
        assert.deepEqual(replay.end, { kind: 'returned', value: order(n).sort((a, b) => a - b) })
        assert.isAtMost(history.lookups, n * LOOKUPS_A_MEMBER)
      })
    }
  }

  test('only members that may still change are read again', async ({ assert }) => {
    const rows = Array.from({ length: 40 }, (_, i) =>
      remote(i, 'member', i < 30 ? { output: i } : { status: 'pending' })
    )
    const inputs = Array.from({ length: 100 }, (_, i) => i)
    const { replay } = await machine(rows, (ctx) => ctx.all(STEP, inputs))
    assert.deepEqual(replay.openSeqs(), [30, 31, 32, 33, 34, 35, 36, 37, 38, 39])
  })

  test('a position past the last of a fan, and before its first, belongs to others', async ({
    assert,
  }) => {
    const { replay } = await machine([], async (ctx) => {
      const inputs = Array.from({ length: 20 }, (_, i) => i)
      await Promise.all([
        ctx.step('before', 0),
        ctx.all(STEP, inputs),
        ctx.step('between', 0),
        ctx.all(STEP, inputs),
        ctx.step('after', 0),
      ])
    })
    const open = Array.from({ length: 44 }, (_, seq) => replay.isOpen(seq))
    assert.deepEqual(
      open,
      open.map((_, seq) => seq < 43)
    )
    assert.lengthOf(replay.takeAttention(0), 5)
    replay.changed([1, 20])
    assert.deepEqual(
      replay.takeAttention(0).map(({ seq }) => seq),
      [1]
    )
    replay.changed([21, 22, 41, 42])
    assert.deepEqual(
      replay.takeAttention(0).map(({ seq }) => seq),
      [21, 22, 42]
    )
  })
})
