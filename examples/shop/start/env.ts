import { Env } from '@adonisjs/core/env'

export default await Env.create(new URL('../', import.meta.url), {
  NODE_ENV: Env.schema.enum(['development', 'production', 'test'] as const),
  HOST: Env.schema.string({ format: 'host' }),
  PORT: Env.schema.number(),
  LOG_LEVEL: Env.schema.string.optional(),
  APP_KEY: Env.schema.secret(),
  APP_URL: Env.schema.string({ format: 'url', tld: false }),

  /** A key of `transports` in config/durable.ts; default eventEmitter. */
  DURABLE_TRANSPORT: Env.schema.string.optional(),

  /** Of the bullmq and queue transports: where Redis is, and how its names begin; default a local one, durable. */
  REDIS_URL: Env.schema.string.optional(),
  REDIS_PREFIX: Env.schema.string.optional(),

  /** The SQLite file; default database/shop.sqlite. */
  DB_FILE: Env.schema.string.optional(),

  /** Where step bodies note that they ran; default journal.log. */
  JOURNAL_FILE: Env.schema.string.optional(),

  /** What this process is called in the journal; default its process id. */
  PROCESS_NAME: Env.schema.string.optional(),

  /** How long wrapping a gift takes; default 3000. */
  WRAPPING_MS: Env.schema.number.optional(),
})
