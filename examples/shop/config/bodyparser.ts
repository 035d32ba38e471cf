import { defineConfig } from '@adonisjs/core/bodyparser'

export default defineConfig({
  allowedMethods: ['POST', 'PUT', 'PATCH', 'DELETE'],
  json: {
    convertEmptyStringsToNull: true,
    types: ['application/json', 'application/*+json'],
  },
})
