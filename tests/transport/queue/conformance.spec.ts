import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import { runRunDispatchContract, runTransportContract } from '../../../src/testing/conformance.ts'
import {
  TransportSession,
  assertTransportConformance,
} from '../../../src/testing/contracts/transport.ts'
import { ofCase } from '../of_case.ts'
import { ADAPTERS, QueueBench, dropDatabases } from './bench.ts'

for (const behind of ADAPTERS) {
  const open = (cleanup: TestContext['cleanup']) => QueueBench.open(cleanup, behind)

  test.group(`transport contract | queue on ${behind}`, (group) => {
    group.each.timeout(30_000)
    group.teardown(dropDatabases)

    runTransportContract('queue', () => ofCase(open, (bench) => bench.underContract()), {
      test: (title, run) => test(title, () => run()),
    })

    test('assertTransportConformance accepts it and closes it', async ({ assert, cleanup }) => {
      const bench = await QueueBench.open(cleanup, behind)
      const transport = await bench.transport({ onError: () => {} })
      await assertTransportConformance(transport)
      const task = new TransportSession(transport, 'late').task('x', null)
      await assert.rejects(() => transport.dispatch(task), /closed/)
    })
  })

  test.group(`run queue contract | queue on ${behind}`, (group) => {
    group.each.timeout(30_000)
    group.teardown(dropDatabases)

    runRunDispatchContract('queue', () => ofCase(open, (bench) => bench.runQueues()), {
      test: (title, run) => test(title, () => run()),
    })
  })
}
