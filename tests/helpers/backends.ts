/*
 * Which servers the tests may use. A backend that is absent is one visible line on a developer's
 * machine and a failure when CI=true, so that nothing is skipped in silence where it counts.
 */
import { connect } from 'node:net'

export type Backend = 'postgres' | 'mysql' | 'redis'

const BACKENDS = {
  postgres: {
    title: 'Postgres',
    variable: 'DURABLE_TEST_PG_URL',
    url: 'postgres://postgres@127.0.0.1:5432/test',
    port: 5432,
  },
  mysql: {
    title: 'MySQL',
    variable: 'DURABLE_TEST_MYSQL_URL',
    url: 'mysql://root@127.0.0.1:3306/test',
    port: 3306,
  },
  redis: {
    title: 'Redis',
    variable: 'DURABLE_TEST_REDIS_URL',
    url: 'redis://127.0.0.1:6379',
    port: 6379,
  },
} as const satisfies Record<Backend, object>

const PROBE_TIMEOUT_MS = 2_000

const probes = new Map<string, Promise<boolean>>()
const announced = new Set<string>()

/** Where the tests look for a backend, whether or not something answers there. */
export function backendUrl(name: Backend): string {
  return process.env[BACKENDS[name].variable] || BACKENDS[name].url
}

/** True when something accepts TCP connections at the host and port of `url`; asked once per address. */
export function isReachable(url: string): Promise<boolean> {
  const { host, port } = addressOf(url)
  const key = `${host}:${port}`
  const known = probes.get(key)
  if (known) return known
  const probe = new Promise<boolean>((resolve) => {
    const socket = connect({ host, port })
    const settle = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(PROBE_TIMEOUT_MS, () => settle(false))
    socket.once('connect', () => settle(true))
    socket.once('error', () => settle(false))
  })
  probes.set(key, probe)
  return probe
}

/**
 * The URL of a backend, or null when it is absent: then a line `skipped: no Postgres at …` was
 * printed, once per process. Throws instead when CI=true.
 */
export async function backend(name: Backend): Promise<string | null> {
  const url = backendUrl(name)
  if (await isReachable(url)) return url
  const { title, variable } = BACKENDS[name]
  const { host, port } = addressOf(url)
  const where = `${host}:${port}`
  if (process.env.CI === 'true') {
    throw new Error(`no ${title} at ${where}; with CI=true every backend must run (${variable})`)
  }
  if (!announced.has(name + where)) {
    announced.add(name + where)
    console.log(
      `skipped: no ${title} at ${where} (set ${variable} or run scripts/services.sh start)`
    )
  }
  return null
}

function addressOf(url: string): { host: string; port: number } {
  const { protocol, hostname, port } = new URL(url)
  const fallback = Object.values(BACKENDS).find((known) => new URL(known.url).protocol === protocol)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (fallback?.port ?? 0) }
}
