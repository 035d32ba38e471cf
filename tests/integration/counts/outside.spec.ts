/*
 * What reaches many costs so much for each of them; what is sent to one key costs the same however often.
 */
import { setTimeout } from 'node:timers/promises'
import { test } from '@japa/runner'
import { countedStores, registerTimes, useCounting } from './rig.ts'

const MINUTE = 60_000

for (const kind of await countedStores()) {
  const dialect = kind.dialect!
  test.group(`From outside | ${kind.name}`, (group) => {
    const rig = useCounting(group, kind)

    for (const waiters of [10, 1000]) {
      test(`an event for ${waiters} runs`, async ({ assert }) => {
        const waiting = rig.engine()
        registerTimes(waiting, 'w', 1, (ctx) => ctx.waitForEvent('e', { match: { n: 1 } }))
        for (let i = 0; i < waiters; i++) await waiting.start('w', null, `r${i}`)
        await rig.world.quiet()
        // Its turns cannot begin: what is counted is the publishing alone.
        const publishing = rig.engine({ turnSlots: 1 })
        publishing.register('hold', '1', async (ctx) =>
          ctx.localStep('s', () => new Promise(() => {}))
        )
        await publishing.start('hold', null, 'hold')
        await rig.world.reached('hold', 'running')
        await rig.world.quiet()
        const counter = rig.counter(publishing)
        let reached = 0
        const cost = await counter.of(async () => {
          reached = await publishing.publishEvent('e', { n: 1 })
        })
        assert.equal(reached, waiters)
        const each = { postgres: 2, sqlite: 8, mysql: 3 }[dialect]
        assert.isAtMost(cost.statements, 10 + each * waiters)
      }).timeout(2 * MINUTE)
    }

    test('a call of an entity, the tenth and the thousandth', async ({ assert }) => {
      const engine = rig.engine()
      const counter = rig.counter(engine)
      engine.registerEntity<{ n: number }>('counter', {
        initialState: () => ({ n: 0 }),
        handlers: { add: (state, by: number) => (state.n += by) },
      })
      engine.register('call', '1', async (ctx) => ctx.callEntity('counter', 'k', 'add', 1))
      const median = async (from: number) => {
        const costs: number[] = []
        for (let i = from; i < from + 11; i++) {
          const { statements } = await counter.of(() => counter.play('call', `r${i}`))
          costs.push(statements)
        }
        return costs.sort((a, b) => a - b)[5]
      }
      const early = await median(0)
      for (let i = 0; i < 1000; i++) {
        const message = { op: 'add', arg: 1, opId: `o${i}` }
        await rig.world.store.bufferSignal('entity:counter:k', message)
      }
      await engine.signalEntity('counter', 'k', 'add', 1)
      for (let n = 0; (await engine.getEntityState<{ n: number }>('counter', 'k'))!.n < 1012; n++) {
        assert.isBelow(n, 3000, 'the operations are executed')
        await setTimeout(20)
      }
      await rig.world.quiet()
      // A wake that meets a turn under way costs one statement more, early or late.
      assert.isAtMost(await median(1000), early + 1)
    }).timeout(3 * MINUTE)
  })
}
