import app from '@adonisjs/core/services/app'
import { defineConfig } from '@adonisjs/lucid'
import env from '#start/env'

export default defineConfig({
  connection: 'sqlite',
  connections: {
    sqlite: {
      client: 'better-sqlite3',
      connection: {
        filename: env.get('DB_FILE', app.makePath('database/shop.sqlite')),
      },
      useNullAsDefault: true,
      pool: {
        min: 1,
        max: 1,
        // The web process and the workers share the file: readers must not hold up the writer.
        afterCreate: (connection, done) => {
          connection.pragma('journal_mode = WAL')
          connection.pragma('synchronous = NORMAL')
          done(null, connection)
        },
      },
      migrations: {
        naturalSort: true,
        paths: ['database/migrations'],
      },
      schemaGeneration: {
        enabled: false,
      },
    },
  },
})
