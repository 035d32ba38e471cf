export { RedisAdmissionBackend } from './redis_admission.ts'
export type { RedisAdmissionOptions } from './redis_admission.ts'
export type { AdonisRedisConnection, IoRedisClient, RedisClient } from '../../redis/client.ts'
