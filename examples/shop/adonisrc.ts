import { defineConfig } from '@adonisjs/core/app'

export default defineConfig({
  commands: [
    () => import('@adonisjs/core/commands'),
    () => import('@adonisjs/lucid/commands'),
    () => import('@adonis-agora/durable/commands'),
  ],
  providers: [
    () => import('@adonisjs/core/providers/app_provider'),
    { file: () => import('@adonisjs/core/providers/repl_provider'), environment: ['repl'] },
    () => import('@adonisjs/lucid/database_provider'),
    () => import('@adonisjs/redis/redis_provider'),
    () => import('@adonis-agora/durable/durable_provider'),
  ],
  hooks: {
    init: [
      () => import('@adonis-agora/durable/hooks/workflows'),
      () => import('@adonis-agora/durable/hooks/steps'),
    ],
  },
  preloads: [() => import('#start/routes'), () => import('#start/kernel')],
})
