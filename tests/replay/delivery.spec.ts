import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { local, machine, remote, signal, sleep } from './machine.ts'

/** Two branches of two steps each; the log shows the order in which results were seen. */
const twoBranches = (log: string[]) => async (ctx: WorkflowCtx) => {
  const branch = async (name: string) => {
    for (const step of ['1', '2']) {
      log.push(`${name}${step}=${await ctx.step<string>(`${name}${step}`, null)}`)
    }
  }
  await Promise.all([branch('a'), branch('b')])
  return log.join(' ')
}

test.group('Replay | delivery order', () => {
  test('positions are taken in argument order, before anything is awaited', async ({ assert }) => {
    const { replay } = await machine([], (ctx) =>
      Promise.all([
        ctx.step('x', 1),
        ctx.sleep(5),
        ctx.waitForSignal('t'),
        ctx.localStep('l', () => 1),
      ])
    )
    const commands = replay.takeAttention(0).map(({ command }) => [command.seq, command.kind])
    assert.deepEqual(commands, [
      [0, 'call'],
      [1, 'timer'],
      [2, 'signal'],
      [3, 'local'],
    ])
  })

  test('all commands opened since the last pause are handed over at once', async ({ assert }) => {
    const { replay } = await machine([], (ctx) =>
      Promise.all(Array.from({ length: 1000 }, (_, i) => ctx.step('s', i)))
    )
    assert.lengthOf(replay.takeAttention(0), 1000)
    assert.lengthOf(replay.takeAttention(0), 0)
  })

  test('results are seen in their recorded order, whatever their times say', async ({ assert }) => {
    const log: string[] = []
    const { replay } = await machine(
      [
        remote(0, 'a1', { output: 'A1', order: 1, at: 10 }),
        remote(1, 'b1', { output: 'B1', order: 0, at: 99 }),
        remote(2, 'b2', { output: 'B2', order: 2, at: 100 }),
        remote(3, 'a2', { output: 'A2', at: 50 }),
      ],
      twoBranches(log)
    )
    assert.deepEqual(log, ['b1=B1', 'a1=A1', 'b2=B2', 'a2=A2'])
    assert.deepEqual(replay.takeStamps(), [])
    assert.deepEqual(replay.end, { kind: 'returned', value: log.join(' ') })
  })

  test('without a recorded order the earlier settled is seen first, then the lower position; each is stamped', async ({
    assert,
  }) => {
    const log: string[] = []
    const { replay, add } = await machine([], twoBranches(log))
    await add(remote(0, 'a1', { output: 'A1', at: 20 }), remote(1, 'b1', { output: 'B1', at: 10 }))
    assert.deepEqual(log, ['b1=B1', 'a1=A1'])
    assert.deepEqual(replay.takeStamps(), [
      { seq: 1, order: 0 },
      { seq: 0, order: 1 },
    ])
    await add(remote(2, 'b2', { output: 'B2', at: 7 }), remote(3, 'a2', { output: 'A2', at: 7 }))
    assert.deepEqual(log.slice(2), ['b2=B2', 'a2=A2'])
    assert.deepEqual(replay.takeStamps(), [{ seq: 2, order: 2 }])
  })

  test('a result awaited alone is never stamped', async ({ assert }) => {
    const { replay, add } = await machine([], async (ctx) => {
      await ctx.step('one', null)
      await ctx.step('two', null)
    })
    await add(remote(0, 'one'))
    await add(remote(1, 'two'))
    assert.deepEqual(replay.takeStamps(), [])
    assert.equal(replay.end?.kind, 'returned')
  })

  test('the branch that won a race wins again, although both are settled now', async ({
    assert,
  }) => {
    const race = (ctx: WorkflowCtx) =>
      Promise.race([ctx.waitForSignal<string>('go'), ctx.sleep(100).then(() => 'late')])
    const won = await machine(
      [signal(0, 'go', { output: 'go', at: 150 }), sleep(1, 100, { order: 0 })],
      race,
      500
    )
    assert.deepEqual(won.replay.end, { kind: 'returned', value: 'late' })
  })

  test('a sleep with a recorded order is over, whatever this clock says', async ({ assert }) => {
    const log: string[] = []
    const { replay } = await machine(
      [sleep(0, 1000, { order: 0 }), remote(1, 's', { output: 1, order: 1 })],
      async (ctx) => {
        await Promise.all([
          ctx.sleep('1s').then(() => log.push('slept')),
          ctx.step('s', null).then(() => log.push('step')),
        ])
      },
      10
    )
    assert.deepEqual(log, ['slept', 'step'])
    assert.equal(replay.end?.kind, 'returned')
  })

  test('a sleep is seen when its recorded deadline passed, not the one the code now asks for', async ({
    assert,
  }) => {
    const { replay, settle } = await machine([sleep(0, 50)], (ctx) => ctx.sleep('9 days'), 40)
    assert.isUndefined(replay.end)
    assert.equal(replay.nextDeadline(), 50)
    await settle(50)
    assert.equal(replay.end?.kind, 'returned')
  })

  test('nothing is seen before a completion that has an order but is not durable yet', async ({
    assert,
  }) => {
    const log: string[] = []
    const { replay, settle } = await machine([], async (ctx) => {
      await Promise.all([
        ctx.localStep('l', () => 1).then(() => log.push('local')),
        ctx.step('s', null).then(() => log.push('step')),
      ])
    })
    const { history } = replay
    history.put(local(0, 'l', { output: 1, order: history.takeOrder() }), { inFlight: true })
    replay.changed([0, ...history.merge([remote(1, 's', { output: 2 })])])
    await settle()
    assert.deepEqual(log, [])
    history.landed(0)
    replay.changed([0])
    await settle()
    assert.deepEqual(log, ['local', 'step'])
  })

  test('what a body does to a result does not reach history', async ({ assert }) => {
    const { replay } = await machine([remote(0, 's', { output: { list: [1] } })], async (ctx) => {
      const value = await ctx.step<{ list: number[] }>('s', null)
      value.list.push(2)
      return value
    })
    assert.deepEqual(replay.end, { kind: 'returned', value: { list: [1, 2] } })
    assert.deepEqual(replay.history.at(0)?.output, { list: [1] })
  })

  test('a thousand settled branches are delivered in linear time', async ({ assert }) => {
    const n = 5000
    const rows = Array.from({ length: n }, (_, i) =>
      remote(i, 's', { output: i, order: n - 1 - i })
    )
    const seen: number[] = []
    const { replay } = await machine(rows, (ctx) =>
      Promise.all(
        Array.from({ length: n }, (_, i) => ctx.step<number>('s', i).then((v) => seen.push(v)))
      )
    )
    assert.equal(replay.end?.kind, 'returned')
    assert.deepEqual(seen.slice(0, 3), [n - 1, n - 2, n - 3])
  })
})
