/*
 * Results that arrive twice, late, or after the run was cancelled, over every real broker: a step is settled
 * once, and a run that is over stays as it ended.
 */
import { getActiveTestOrFail, test } from '@japa/runner'
import { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { until } from '../helpers/until.ts'
import { BROKERS, type Broker, openBroker } from '../transport/brokers.ts'

/** An engine, and a worker whose handlers answer when the test says so. */
async function stage(broker: Broker) {
  const { store, open } = await openBroker(broker)
  const engine = new WorkflowEngine({ store, transport: await open('engine') })
  getActiveTestOrFail().cleanup(() => engine.drain(5000))
  const pickups: { answer: (output: unknown) => void }[] = []
  const worker = await open('worker')
  worker.handle!('work', () => {
    const { promise, resolve } = deferred()
    pickups.push({ answer: resolve })
    return promise
  })
  worker.handle!('plain', (input) => input)
  engine.register('w', '1', async (ctx) => {
    const first = await ctx.step('work', null)
    return [first, await ctx.waitForSignal(`go ${ctx.runId}`)]
  })
  // Answers come in order: when the one of a later run has been acted on, so have those before it.
  engine.register('later', '1', (ctx) => ctx.step('plain', 1))
  const settled: string[] = []
  engine.subscribe((event) => {
    if (event.type === 'step.completed' && event.name === 'work') settled.push(event.runId)
  })
  const picked = (count: number) => until(() => pickups.length >= count, `pickup ${count}`)
  const over = async (runId: string) => {
    const { status, output } = await engine.waitForRun(runId, { terminal: true, timeoutMs: 30_000 })
    return { status, output }
  }
  let rounds = 0
  const answersActedOn = async () => {
    const id = `later ${rounds++}`
    await engine.start('later', null, id)
    await over(id)
  }
  return { engine, store, pickups, picked, settled, over, answersActedOn }
}

test.group('Repeated results', (group) => {
  group.each.timeout(120_000)

  test('over {$self}: a step that two workers answer is settled once, by the first')
    .with(BROKERS)
    .run(async ({ assert }, broker) => {
      const { engine, store, pickups, picked, settled, over, answersActedOn } = await stage(broker)
      await engine.start('w', null, 'r')
      await picked(1)
      await engine.redispatchPending('r')
      await picked(2)
      pickups[1].answer('second')
      await until(() => settled.length > 0, 'the answer')
      pickups[0].answer('first')
      await answersActedOn()
      await engine.signal('go r', 'on')
      assert.deepEqual(await over('r'), { status: 'completed', output: ['second', 'on'] })
      assert.deepEqual(settled, ['r'])
      const [row] = await store.listCheckpoints('r')
      assert.deepInclude(row, { status: 'completed', output: 'second' })
    })
    .tags(['@scenario-20'])

  test('over {$self}: an answer for a cancelled run changes nothing')
    .with(BROKERS)
    .run(async ({ assert }, broker) => {
      const { engine, pickups, picked, settled, over, answersActedOn } = await stage(broker)
      await engine.start('w', null, 'r')
      await picked(1)
      await engine.cancel('r')
      // Its children are told, and the mark that they must be is gone.
      const before = await until(async () => {
        const run = await engine.getRun('r')
        return run?.cancelRequestedAt === undefined && run
      }, 'the end of the cancel')
      pickups[0].answer('late')
      await answersActedOn()
      const { status } = await over('r')
      assert.equal(status, 'cancelled')
      assert.deepEqual(await engine.getRun('r'), before)
      assert.deepEqual(settled, [])
    })
    .tags(['@scenario-20'])
})
