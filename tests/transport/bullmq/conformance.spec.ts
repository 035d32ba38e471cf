import { randomUUID } from 'node:crypto'
import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import { runRunDispatchContract, runTransportContract } from '../../../src/testing/conformance.ts'
import {
  TransportSession,
  assertTransportConformance,
} from '../../../src/testing/contracts/transport.ts'
import { ofCase } from '../of_case.ts'
import { BullBench, RELEASES, redisUrl } from './bench.ts'

for (const [release, load] of redisUrl ? Object.entries(RELEASES) : []) {
  const open = (cleanup: TestContext['cleanup']) => new BullBench(cleanup, load)

  test.group(`transport contract | ${release}`, (group) => {
    group.each.timeout(60_000)

    runTransportContract('bullmq', () => ofCase(open, (bench) => bench.underContract()), {
      test: (title, run) => test(title, () => run()),
    })

    test('assertTransportConformance accepts it and closes it', async ({ assert, cleanup }) => {
      const transport = await open(cleanup).transport({ onError: () => {} })
      await assertTransportConformance(transport, randomUUID())
      const task = new TransportSession(transport, 'late').task('x', null)
      await assert.rejects(() => transport.dispatch(task), /closed/)
    })
  })

  test.group(`run queue contract | ${release}`, (group) => {
    group.each.timeout(60_000)

    runRunDispatchContract('bullmq', () => ofCase(open, (bench) => bench.runQueues()), {
      test: (title, run) => test(title, () => run()),
    })
  })
}
