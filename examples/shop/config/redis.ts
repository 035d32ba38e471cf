import { defineConfig } from '@adonisjs/redis'
import type { InferConnections } from '@adonisjs/redis/types'
import env from '#start/env'

const { hostname, port, username, password, pathname } = new URL(
  env.get('REDIS_URL', 'redis://127.0.0.1:6379')
)

const redisConfig = defineConfig({
  connection: 'main',
  connections: {
    main: {
      host: hostname,
      port: Number(port || 6379),
      username: decodeURIComponent(username) || undefined,
      password: decodeURIComponent(password) || undefined,
      db: Number(pathname.slice(1) || 0),
    },
  },
})

export default redisConfig

declare module '@adonisjs/redis/types' {
  export interface RedisConnections extends InferConnections<typeof redisConfig> {}
}
