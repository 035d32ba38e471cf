import { test } from '@japa/runner'
import { runRunDispatchContract, runTransportContract } from '../../../src/testing/conformance.ts'
import { assertTransportConformance } from '../../../src/testing/contracts/transport.ts'
import { TransportSession } from '../../../src/testing/contracts/transport_session.ts'
import { createDatabase, reachableDialects } from '../../helpers/databases.ts'
import { ContractDatabase } from './bench.ts'

for (const dialect of await reachableDialects()) {
  test.group(`transport contract | db on ${dialect}`, (group) => {
    let database: ContractDatabase
    group.setup(async () => {
      database = new ContractDatabase(await createDatabase(dialect))
      return () => database.close()
    })
    group.tap((each) => each.timeout(60_000))

    runTransportContract('db', () => database.underContract(), {
      test: (title, run) => test(title, () => run()),
    })

    test('assertTransportConformance accepts it and closes it', async ({ assert }) => {
      const transport = database.opener()({ onError: () => {} })
      await assertTransportConformance(transport)
      const task = new TransportSession(transport, 'late').task('x', null)
      await assert.rejects(() => transport.dispatch(task), /closed/)
    })
  })

  test.group(`run queue contract | db on ${dialect}`, (group) => {
    let database: ContractDatabase
    group.setup(async () => {
      database = new ContractDatabase(await createDatabase(dialect))
      return () => database.close()
    })
    group.tap((each) => each.timeout(60_000))

    runRunDispatchContract('db', async () => database.runQueues(), {
      test: (title, run) => test(title, () => run()),
    })
  })
}
