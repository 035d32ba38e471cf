import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { test } from '@japa/runner'
import { backend, backendUrl, isReachable } from './backends.ts'

/** Sets environment variables for one test; returns what puts the old values back. */
function withEnvironment(values: Record<string, string | undefined>) {
  const before = Object.keys(values).map((name) => [name, process.env[name]] as const)
  const assign = (entries: (readonly [string, string | undefined])[]) => {
    for (const [name, value] of entries) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
  assign(Object.entries(values))
  return () => assign(before)
}

function captureConsole(cleanup: (restore: () => void) => void): string[] {
  const lines: string[] = []
  const print = console.log
  console.log = (line: string) => void lines.push(line)
  cleanup(() => {
    console.log = print
  })
  return lines
}

async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

test.group('backends', () => {
  test('a listening server is reachable and its URL is returned', async ({ assert, cleanup }) => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanup(() => void server.close())
    const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
    cleanup(withEnvironment({ DURABLE_TEST_REDIS_URL: url }))

    assert.isTrue(await isReachable(url))
    assert.equal(await backend('redis'), url)
  })

  test('an absent server is null locally and an error in CI', async ({ assert, cleanup }) => {
    const url = `postgres://postgres@127.0.0.1:${await closedPort()}/test`
    cleanup(withEnvironment({ DURABLE_TEST_PG_URL: url, CI: undefined }))
    assert.isFalse(await isReachable(url))
    const lines = captureConsole(cleanup)
    assert.isNull(await backend('postgres'))
    assert.isNull(await backend('postgres'))
    assert.lengthOf(lines, 1)
    assert.match(lines[0], /^skipped: no Postgres at 127\.0\.0\.1:\d+/)

    cleanup(withEnvironment({ CI: 'true' }))
    await assert.rejects(() => backend('postgres'), /no Postgres at 127\.0\.0\.1/)
  })

  test('without variables the loopback defaults hold', ({ assert, cleanup }) => {
    cleanup(
      withEnvironment({
        DURABLE_TEST_PG_URL: undefined,
        DURABLE_TEST_MYSQL_URL: undefined,
        DURABLE_TEST_REDIS_URL: undefined,
      })
    )
    assert.equal(backendUrl('postgres'), 'postgres://postgres@127.0.0.1:5432/test')
    assert.equal(backendUrl('mysql'), 'mysql://root@127.0.0.1:3306/test')
    assert.equal(backendUrl('redis'), 'redis://127.0.0.1:6379')
  })
})
