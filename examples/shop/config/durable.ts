import { defineConfig, stores, transports } from '@adonis-agora/durable'
import env from '#start/env'

const IN_PROCESS = 'eventEmitter'
const transport = env.get('DURABLE_TRANSPORT', IN_PROCESS)

export default defineConfig({
  store: 'lucid',
  stores: {
    lucid: stores.lucid(),
  },

  // The migrations make the tables, those of the db transport too.
  autoSchema: false,

  // Steps run in the process of their run, or in any worker. A worker that died is missed after a few
  // seconds here; by default after 30.
  transport,
  transports: {
    eventEmitter: transports.eventEmitter(),
    db: transports.db({ autoCreate: false, leaseMs: 3000 }),
    bullmq: transports.bullmq({
      connection: env.get('REDIS_URL', 'redis://127.0.0.1:6379'),
      prefix: env.get('REDIS_PREFIX', 'durable'),
      lockDuration: 3000,
      stalledInterval: 1000,
    }),
    queue: transports.queue({
      prefix: env.get('REDIS_PREFIX', 'durable'),
      stalledThresholdMs: 3000,
      stalledCheckIntervalMs: 1000,
    }),
  },

  // Between processes the web process dispatches and leaves the steps to workers.
  consumers: transport === IN_PROCESS ? 'auto' : 'never',

  // The web process starts runs and leaves them to `node ace durable:work`.
  drive: false,

  // An in-process transport loses its tasks with the process. A step that was lost that way is sent
  // again after two lease lengths, so a short lease is a short wait. Default: 30 seconds.
  leaseMs: 3000,

  worker: {
    intervalMs: 250,
  },

  maxRecoveryAttempts: 5,
  compensationRetries: 5,
})
