export { RedisControlPlane } from './redis_control_plane.ts'
export type { RedisControlPlaneOptions } from './redis_control_plane.ts'
export type { AdonisRedisConnection, IoRedisClient, RedisClient } from '../../redis/client.ts'
