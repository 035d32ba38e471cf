import { defineConfig, stores, transports } from '@adonis-agora/durable'

export default defineConfig({
  store: 'lucid',
  stores: {
    lucid: stores.lucid(),
  },

  // The migrations make the tables.
  autoSchema: false,

  transport: 'eventEmitter',
  transports: {
    eventEmitter: transports.eventEmitter(),
  },

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
