/*
 * The option `connection`: what ioredis is told, whichever way it was written. Refuses what would make
 * ioredis connect to a Redis that nobody named.
 */
import { InvalidArgumentError } from '../../errors.ts'
import type { RedisClient, RedisSettings } from './deps.ts'

/**
 * Where Redis is: options of ioredis, a `redis://` or `rediss://` URL
 * (`rediss://user:pass@host:6380/2?family=6`), or a client of ioredis, which is used, duplicated and
 * never closed.
 */
export type BullMQConnection = RedisSettings | string | RedisClient

export type ConnectionSource =
  { kind: 'settings'; settings: RedisSettings } | { kind: 'client'; client: RedisClient }

const WHAT = 'transports.bullmq: connection'
const DEFAULT_PORT = 6379

/** Throws `InvalidArgumentError`, never with a password in its message. */
export function readConnection(given: BullMQConnection | undefined | null): ConnectionSource {
  if (typeof given === 'string') return { kind: 'settings', settings: fromUrl(given) }
  if (given === undefined || given === null || isEmpty(given)) throw nameless('is missing')
  if (typeof given !== 'object') {
    throw new InvalidArgumentError(WHAT, 'must be an object, a redis:// URL or a client of ioredis')
  }
  if (isClient(given)) return { kind: 'client', client: given }
  const { url, ...rest } = given as RedisSettings
  if (typeof url === 'string') return { kind: 'settings', settings: { ...fromUrl(url), ...rest } }
  const settings = rest as RedisSettings
  if ('host' in settings && !settings.host && !settings.path) throw nameless('has no host')
  return { kind: 'settings', settings }
}

const nameless = (problem: string): InvalidArgumentError =>
  new InvalidArgumentError(
    WHAT,
    `${problem}: ioredis would take the Redis at 127.0.0.1:6379, whosever it is. ` +
      'Give { host, port } or a redis:// URL (is an environment variable unset?)'
  )

const isEmpty = (given: object): boolean =>
  typeof given === 'object' && Object.values(given).every((value) => value === undefined)

function isClient(given: object): given is RedisClient {
  return ['duplicate', 'disconnect', 'publish'].every(
    (method) => typeof (given as Record<string, unknown>)[method] === 'function'
  )
}

function fromUrl(text: string): RedisSettings {
  if (text.trim() === '') throw nameless('is empty')
  const url = parse(text)
  if (url?.protocol !== 'redis:' && url?.protocol !== 'rediss:') {
    throw new InvalidArgumentError(WHAT, 'must be a URL that begins with redis:// or rediss://')
  }
  if (url.hostname === '') throw nameless('has no host')
  const settings: RedisSettings = {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
  }
  if (url.username !== '') settings.username = decoded(url.username, 'user name')
  if (url.password !== '') settings.password = decoded(url.password, 'password')
  const db = url.pathname.replace(/^\//, '')
  if (db !== '') settings.db = whole(db, 'the path (the number of the database)')
  const family = url.searchParams.get('family')
  if (family !== null) settings.family = addressFamily(family)
  if (url.protocol === 'rediss:') settings.tls = {}
  return settings
}

function parse(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}

function decoded(part: string, what: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new InvalidArgumentError(WHAT, `has a ${what} that is not percent-encoded`)
  }
}

function whole(text: string, what: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError(WHAT, `has "${text}" as ${what}, which must be a whole number`)
}

function addressFamily(text: string): number {
  if (text === '0' || text === '4' || text === '6') return Number(text)
  throw new InvalidArgumentError(WHAT, `has family=${text}, which must be 4, 6 or 0 (either)`)
}
