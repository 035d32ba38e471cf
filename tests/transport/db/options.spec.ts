/*
 * Options of the db transport that cannot be meant are refused, by name, before anything is opened.
 */
import { test } from '@japa/runner'
import { InvalidArgumentError } from '../../../src/errors.ts'
import { DbTransport, type DbTransportConfig } from '../../../src/transport/db/db_transport.ts'

const REFUSED: [object, string][] = [
  [{ leaseMs: 0 }, 'transports.db: leaseMs must be a number from 1, not 0'],
  [{ pollIntervalMs: '200' }, 'transports.db: pollIntervalMs must be a number from 1, not "200"'],
  [{ closeTimeoutMs: -1 }, 'transports.db: closeTimeoutMs must be a number from 0, not -1'],
  [{ batchSize: 1.5 }, 'transports.db: batchSize must be a whole number'],
  [{ maxStalledCount: 0.5 }, 'transports.db: maxStalledCount must be a whole number'],
  [{ resultConcurrency: Infinity }, 'transports.db: resultConcurrency must be a number from 1'],
  [{ namespace: 7 }, 'transports.db: namespace must be a text'],
  [{ partition: {} }, 'transports.db: partition must be a text'],
  [{ instanceId: 7 }, 'transports.db: instanceId must be a text'],
  [{ instanceId: '' }, 'transports.db: instanceId must have 1 to 200 bytes'],
  [{ instanceId: 'é'.repeat(101) }, 'transports.db: instanceId must have 1 to 200 bytes'],
]

test.group('Options of the db transport', () => {
  for (const [options, message] of REFUSED) {
    test(`${message} (${Object.keys(options)[0]})`, ({ assert }) => {
      const config = { ...(options as DbTransportConfig), db: {} as never }
      const error = ((): unknown => {
        try {
          return new DbTransport(config)
        } catch (thrown) {
          return thrown
        }
      })()
      assert.instanceOf(error, InvalidArgumentError)
      assert.isTrue((error as Error).message.startsWith(message), (error as Error).message)
    })
  }

  test('what may be zero is taken as zero', ({ assert }) => {
    const zero = { maxStalledCount: 0, tenantSubscribersCacheMs: 0, closeTimeoutMs: 0 }
    assert.doesNotThrow(() => new DbTransport({ ...zero, db: {} as never }))
  })
})
