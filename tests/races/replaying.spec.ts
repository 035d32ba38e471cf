/*
 * What a replay reads: the history once, whatever its length, and of single rows only those it does not
 * have.
 */
import { test } from '@japa/runner'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const READS = [
  'getCheckpoint',
  'getCheckpoints',
  'listCheckpoints',
  'listCheckpointsAt',
  'listCheckpointsForReplay',
  'queryCheckpoints',
]

/** Takes positions of every kind. */
const many = (n: number) => async (ctx: WorkflowCtx) => {
  let sum = 0
  for (let i = 0; i < n; i++) {
    sum += await ctx.localStep('local', () => 1)
    sum += (await ctx.now()) > 0 ? 1 : 0
    await ctx.setEvent('sum', sum)
    await ctx.sleep(0)
  }
  await ctx.waitForSignal('go')
  return sum
}

for (const kind of await storesUnderTest()) {
  test.group(`Replaying | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    const readsOfReplay = async (n: number): Promise<number> => {
      const id = `r${n}`
      const [first, second] = [world.engine(), world.engine()]
      for (const engine of [first, second]) engine.register(id, '1', many(n))
      await first.start(id, null, id)
      await world.parked(id)
      await world.crash(first)
      await second.signal('go')
      await world.output(id)
      await world.quiet()
      const { calls } = world.gate(second)
      return READS.reduce((sum, member) => sum + (calls.get(member) ?? 0), 0)
    }

    test('a long history is read in as many calls as a short one', async ({ assert }) => {
      const [few, lots] = [await readsOfReplay(1), await readsOfReplay(25)]
      assert.isAtMost(lots, few)
      assert.isAtMost(lots, 3)
    }).tags(['@race-55'])

    test('a row that came after the history was read is seen', async ({ assert }) => {
      const [first, engine, other] = [0, 1, 2].map(() => world.engine({ transport: 'held' }))
      for (const each of [first, engine, other]) {
        each.register('w', '1', async (ctx) => {
          const answer = ctx.step('remote', 1)
          await ctx.localStep('between', () => {})
          return answer
        })
      }
      await first.start('w', null, 'r')
      const task = await world.held.task('remote')
      await world.parked('r')
      await world.crash(first)
      let raced = false
      const answerNow = async (proceed: () => Promise<unknown>) => {
        const rows = await proceed()
        if (!raced) {
          raced = true
          await world.held.complete(task, 'newer', world.port(other))
        }
        return rows
      }
      for (const member of ['listCheckpointsForReplay', 'listCheckpoints'] as const) {
        world.gate(engine).around(member, answerNow)
      }
      world.time.jump(300_001)
      await engine.resumeDueTimers()
      assert.equal(await world.output('r'), 'newer')
      assert.isTrue(raced)
    }).tags(['@race-55'])
  })
}
