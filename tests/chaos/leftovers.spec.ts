/*
 * What brokers still hold is found, and nothing is found where all was taken.
 */
import { randomUUID } from 'node:crypto'
import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import type { Transport } from '../../src/transport/ports.ts'
import type { RemoteTask } from '../../src/wire/messages.ts'
import { createDatabase, type TestDatabase } from '../helpers/databases.ts'
import { emptyPrefix, redisUrl } from '../helpers/redis.ts'
import { until } from '../helpers/until.ts'
import { type Carrier, openTransport } from './carriers.ts'
import { leftovers } from './leftovers.ts'

const TASK: RemoteTask = {
  runId: 'r',
  seq: 0,
  stepId: 'r:0',
  name: 'double',
  group: 'double',
  input: 1,
  attempt: 1,
}
const url = await redisUrl()
const CARRIERS: Carrier[] = [{ name: 'db' }]
for (const name of url === null ? [] : (['bullmq', 'queue'] as const)) {
  CARRIERS.push({ name, redis: { url: url!, prefix: `chaos${randomUUID()}` } })
}
/** How what is left of a task, and of its result, is told. */
const TOLD = {
  db: [/_tasks holds r:0/, /_results holds r:0/],
  bullmq: [/-tasks-double:wait/, /-results:wait/],
  queue: [/:tasks:double::pending/, /:results::pending/],
}

interface Scene {
  transport: Transport
  database: TestDatabase
}

async function scene(carrier: Carrier, cleanup: TestContext['cleanup']): Promise<Scene> {
  const database = await createDatabase('sqlite')
  const transport = await openTransport(carrier, {
    db: database.db,
    name: 'm1',
    clock: Date.now,
    leaseMs: 10_000,
    say: () => {},
  })
  cleanup(async () => {
    await transport.close?.()
    await database.cleanup()
    for (const kind of ['bull:', 'jobs::']) {
      if (carrier.redis) await emptyPrefix(carrier.redis.url, `${kind}${carrier.redis.prefix}`)
    }
  })
  return { transport, database }
}

test.group('Chaos leftovers', () => {
  for (const carrier of CARRIERS) {
    test(`${carrier.name}: a task, then its result, then nothing`, async ({ assert, cleanup }) => {
      const { transport, database } = await scene(carrier, cleanup)
      const left = async () => {
        const found = await leftovers(carrier, database.db)
        return found.join('\n')
      }
      const [task, result] = TOLD[carrier.name as keyof typeof TOLD]

      await transport.dispatch(TASK)
      assert.match(await left(), task)
      transport.handle?.('double', (input) => (input as number) * 2)
      await until(async () => result.test(await left()), 'the result')
      assert.notMatch(await left(), /tasks/)
      transport.onResult(async () => {})
      await until(async () => (await left()) === '', 'nothing to be left')
    })
  }
})
