import app from '@adonisjs/core/services/app'
import { defineConfig } from '@adonisjs/core/http'
import env from '#start/env'

export const appUrl = env.get('APP_URL')

export const http = defineConfig({
  generateRequestId: true,
  cookie: {
    httpOnly: true,
    secure: app.inProduction,
    sameSite: 'lax',
  },
})
