/*
 * A Redis behind TLS, as most hosted ones are: `rediss://`.
 */
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { test } from '@japa/runner'
import type { TestContext } from '@japa/runner/core'
import { TransportSession } from '../../../src/testing/contracts/transport.ts'
import { BullBench, redisUrl } from './bench.ts'

/** A key that both ends know, instead of certificates. */
const PSK = Buffer.from('0123456789abcdef')
const CLIENT = {
  ciphers: 'PSK',
  maxVersion: 'TLSv1.2',
  pskCallback: () => ({ psk: PSK, identity: 'durable' }),
  checkServerIdentity: () => undefined,
} as const

/** Speaks TLS and nothing else, and hands on to Redis. */
async function tlsBefore(url: string, cleanup: TestContext['cleanup']) {
  const { hostname: host, port } = new URL(url)
  const sockets = new Set<TLSSocket>()
  const server = createServer({ ciphers: 'PSK', pskCallback: () => PSK }, (socket) => {
    sockets.add(socket)
    const redis = connect({ host, port: Number(port || 6379) })
    socket.on('error', () => redis.destroy()).on('close', () => redis.destroy())
    redis.on('error', () => socket.destroy()).on('close', () => socket.destroy())
    socket.pipe(redis).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanup(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port: own } = server.address() as AddressInfo
  return { url: `rediss://127.0.0.1:${own}`, sockets }
}

if (redisUrl) {
  test.group('bullmq | TLS', (group) => {
    group.each.timeout(30_000)

    test('steps cross over rediss://, and every connection is encrypted', async ({
      assert,
      cleanup,
    }) => {
      const { url, sockets } = await tlsBefore(redisUrl!, cleanup)
      const bench = new BullBench(cleanup)
      const session = await bench.session({ connection: { url, tls: CLIENT } })
      session.serve('double', (input) => (input as number) * 2)
      assert.equal(await session.outputOf('double', 21), 42)
      assert.isAbove(sockets.size, 2)
      for (const socket of sockets) assert.isTrue(socket.encrypted)
    })

    test('redis:// speaks no TLS to it', async ({ assert, cleanup }) => {
      const { url, sockets } = await tlsBefore(redisUrl!, cleanup)
      const bench = new BullBench(cleanup)
      const plain = { url: url.replace('rediss:', 'redis:'), maxRetriesPerRequest: 1 }
      const transport = await bench.transport({ connection: plain, onError: () => {} })
      const task = new TransportSession(transport, bench.prefix).task('x', 1)
      await assert.rejects(() => transport.dispatch(task), /took no job/)
      assert.equal(sockets.size, 0)
    })
  })
}
