/*
 * What control costs: many runs on one key, many timers at once. The clock stands still, so that no retry
 * falls due.
 */
import { test } from '@japa/runner'
import { deferred } from '../../../src/foundation/deferred.ts'
import type { ClaimedRun } from '../../../src/store/ports/run_claims.ts'
import type { WorkflowRun } from '../../../src/types/run.ts'
import { storesUnderTest, until, useWorld } from '../../helpers/engines.ts'
import { countedStores, useCounting } from './rig.ts'

const TIMERS = 10_000
const BATCH = 50
const MINUTE = 60_000

for (const kind of await countedStores()) {
  test.group(`What a singleton key costs | ${kind.name}`, (group) => {
    const counting = useCounting(group, kind)
    const { world } = counting

    /** Statements of `runs` runs on one key, from their starts to the end of the last one. */
    async function cost(runs: number): Promise<number> {
      const engine = counting.engine()
      const counter = counting.counter(engine)
      engine.register('guest', '1', async () => 'out', { singleton: { key: () => `k${runs}` } })
      const { statements } = await counter.of(async () => {
        const ended = Array.from({ length: runs }, (_, i) =>
          counter.next('run.completed', `${runs}:${i}`)
        )
        for (let i = 0; i < runs; i++) await engine.start('guest', null, `${runs}:${i}`)
        await Promise.all(ended)
      })
      counter.stop()
      assertNoTimers()
      return statements
    }
    const assertNoTimers = () => {
      if (world.time.now !== began) throw new Error('the clock moved')
    }
    let began = 0
    group.each.setup(() => {
      began = world.time.now
    })

    test('each of 120 runs costs what each of 30 does', async ({ assert }) => {
      const few = (await cost(30)) / 30
      const many = (await cost(120)) / 120
      assert.isAtMost(many, few * 1.1, `${few} statements each, then ${many}`)
    }).timeout(MINUTE)
  })
}

const kinds = await storesUnderTest({ fallbacks: false })
const [memory] = kinds

for (const kind of kinds) {
  if (kind.dialect !== undefined && kind.dialect !== 'sqlite') continue
  test.group(`Ten thousand due timers | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    /** Runs that are all due, each a millisecond longer than the next. */
    async function fillWithDue() {
      for (let place = 0; place < TIMERS; place++) {
        const at = new Date(world.time.now)
        const run: WorkflowRun = {
          id: `r${(place * 7_919) % TIMERS}`,
          workflow: 'w',
          workflowVersion: '1',
          status: 'suspended',
          turns: 1,
          wakeAt: world.time.now + place,
          input: place,
          createdAt: at,
          updatedAt: at,
        }
        await world.store.createRun(run)
      }
      world.time.jump(TIMERS)
    }

    test('the most overdue come first, and no more are held than execute', async ({ assert }) => {
      const starting = world.engine()
      starting.register('w', '1', async () => 'done')
      const engine = world.engine({ timerBatchSize: BATCH })
      const order: number[] = []
      let most = 0
      engine.register('w', '1', async (_ctx, place: number) => {
        order.push(place)
        return 'done'
      })
      await fillWithDue()
      let held = 0
      const gate = world.gate(engine)
      gate.around('claimDueRuns', async (proceed) => {
        const claimed = (await proceed()) as ClaimedRun[]
        held += claimed.length
        most = Math.max(most, held)
        return claimed
      })
      engine.subscribe(({ type }) => {
        if (type === 'run.completed') held -= 1
      })
      for (let pass = 0; pass < TIMERS / BATCH; pass++) {
        const results = await engine.resumeDueTimers()
        assert.lengthOf(results, BATCH)
      }
      assert.lengthOf(order, TIMERS)
      assert.isAtMost(most, BATCH)
      // Within a batch they execute side by side.
      const displaced = order.filter(
        (place, i) => Math.floor(place / BATCH) !== Math.floor(i / BATCH)
      )
      assert.deepEqual(displaced, [])
    }).timeout(2 * MINUTE)

    // That a pass waits for nobody is no matter of stores.
    if (kind !== memory) return

    test('one slow step delays no other run', async ({ assert }) => {
      const engine = world.engine({ timerBatchSize: BATCH })
      const slow = deferred<string>()
      let [inFlight, most, done] = [0, 0, 0]
      engine.register('w', '1', async (ctx, place: number) => {
        inFlight += 1
        most = Math.max(most, inFlight)
        await ctx.localStep('work', () => (place === 0 ? slow.promise : 'quick'))
        inFlight -= 1
        done += 1
        return place
      })
      await fillWithDue()
      // The most overdue run is the slow one; a worker does not wait for the pass that took it.
      const first = engine.resumeDueTimers()
      await until(() => done === BATCH - 1, 'the rest of the first pass')
      for (let pass = 1; pass < TIMERS / BATCH; pass++) {
        assert.lengthOf(await engine.resumeDueTimers(), BATCH)
        assert.equal(done, (pass + 1) * BATCH - 1)
      }
      assert.equal(await world.status('r0'), 'running')
      assert.deepEqual(await engine.resumeDueTimers(), [])
      // One batch at a time, and the slow run.
      assert.equal(inFlight, 1)
      assert.isAtMost(most, BATCH + 1)
      slow.resolve('slow')
      assert.lengthOf(await first, BATCH)
      assert.equal(await world.output('r0'), 0)
    }).timeout(2 * MINUTE)
  })
}
