/*
 * Who decides on the slots of flow-control queues. The queues of one process need nothing; what is shared
 * by several is built from the config when the engine is: calling a factory imports and opens nothing.
 */
import type { AdmissionBackend } from '../flow/port.ts'
import { bootNonce } from '../foundation/ids.ts'
import { errorReporter, type FactoryContext } from './factory_context.ts'
import { redisConnection } from './redis_connection.ts'

/** Builds an admission backend; called once per boot. */
export type AdmissionFactory = (
  context: FactoryContext
) => AdmissionBackend | Promise<AdmissionBackend>

export interface RedisAdmissionConfig {
  /** Connection of config/redis.ts; default `main`. Of a single Redis, not a cluster. */
  connection?: string
  /** Start of every key, and of the channel; default `durable`. */
  prefix?: string
  /** Start of the name under which this process holds slots; a tag of each boot is appended. */
  instanceId?: string
  /** Silence after which a process is dead and its slots come back, in ms; default 30 000. */
  instanceTtlMs?: number
  /** When a step that was denied asks again, in ms, unless its queue says; default 1000. */
  retryMs?: number
  /** When a step that stopped asking leaves the line, in ms; default three times the retry. */
  waiterTtlMs?: number
}

/** Admission backends by name, each a function that makes a factory. */
export const admissions = {
  /** Caps of the whole fleet, kept in Redis through the application's `@adonisjs/redis`. */
  redis(config: RedisAdmissionConfig = {}): AdmissionFactory {
    return async (context) => {
      const { connection = 'main', instanceId, ...options } = config
      const redis = await redisConnection(context, connection, 'admissions.redis()')
      const { RedisAdmissionBackend } = await import('../flow/redis/redis_admission.ts')
      const onError = await errorReporter(context, 'the admission of flow-control queues')
      return new RedisAdmissionBackend(redis, {
        ...options,
        // A process that comes back under its name must not keep the slots of the one before alive.
        instanceId: instanceId && `${instanceId}-${bootNonce()}`,
        onError,
      })
    }
  },
}
