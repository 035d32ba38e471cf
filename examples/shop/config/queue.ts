import { defineConfig, drivers } from '@adonisjs/queue'

/** For the queue transport; the shop has no jobs of its own. */
export default defineConfig({
  default: 'redis',
  adapters: {
    redis: drivers.redis({ connectionName: 'main' }),
  },
})
