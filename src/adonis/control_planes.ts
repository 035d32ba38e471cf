/*
 * Control-plane factories for config/durable.ts. Calling one imports nothing and opens nothing; the driver
 * is loaded when the engine is built.
 */
import type { ControlPlane } from '../control_plane/port.ts'
import { errorReporter, type FactoryContext } from './factory_context.ts'
import { redisConnection } from './redis_connection.ts'

/** Builds a control plane; called once per boot. */
export type ControlPlaneFactory = (context: FactoryContext) => ControlPlane | Promise<ControlPlane>

export interface RedisControlPlaneConfig {
  /** Connection of config/redis.ts; default `main`. */
  connection?: string
  /** The channel is `<prefix>-control`; default `durable`. A namespace is never folded in. */
  prefix?: string
  /** How often the subscriber is asked whether it still hears, in ms; default 30 000, 0 or `false` never. */
  pingIntervalMs?: number | false
}

/** Control planes by name, each a function that makes a factory. */
export const controlPlanes = {
  /** Broadcasts over a channel of Redis, through the application's `@adonisjs/redis`. */
  redis(config: RedisControlPlaneConfig = {}): ControlPlaneFactory {
    return async (context) => {
      const { connection = 'main', ...options } = config
      const redis = await redisConnection(context, connection, 'controlPlanes.redis()')
      const { RedisControlPlane } = await import('../control_plane/redis/redis_control_plane.ts')
      const onError = await errorReporter(context, 'the control plane')
      return new RedisControlPlane(redis, { ...options, onError })
    }
  },
}
