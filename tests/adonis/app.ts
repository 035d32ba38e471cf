/*
 * Real AdonisJS applications for tests: one folder each, booted through the ignitor with our provider, and
 * terminated when the test ends.
 */
import { getActiveTest } from '@japa/runner'
import { defineConfig as defineLucidConfig } from '@adonisjs/lucid'
import { IgnitorFactory } from '@adonisjs/core/factories'
import type { ApplicationService } from '@adonisjs/core/types'
import type { AppEnvironments } from '@adonisjs/core/types/app'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

export interface AppOptions {
  environment?: AppEnvironments
  /** config/durable.ts. */
  durable?: unknown
  /** Files of the application, by path. */
  files?: Record<string, string>
  /** Registers `@adonisjs/lucid` over one SQLite connection in memory, or the given config. */
  lucid?: boolean | object
  /** Registers `@adonisjs/redis` with this config. */
  redis?: object
  /** Whether the durable provider is registered; default true. */
  provider?: boolean
  /** Called before the providers register. */
  prepare?: (app: ApplicationService) => unknown
}

/** The package's own modules, as files of an application written by a test import them. */
export const PACKAGE = pathToFileURL(join(import.meta.dirname, '../../index.ts')).href

/** Inside the repository, so that the files of an application find its packages. */
const APPS = join(import.meta.dirname, '../../tmp')

/** A booted application. */
export async function bootApp(options: AppOptions = {}): Promise<ApplicationService> {
  const app = await createApp(options)
  await app.boot()
  return app
}

/** A booted and started application: providers are `ready`. */
export async function startApp(options: AppOptions = {}): Promise<ApplicationService> {
  const app = await bootApp(options)
  await app.start(() => {})
  return app
}

/** An initiated application, terminated when the test ends. */
export async function createApp(options: AppOptions = {}): Promise<ApplicationService> {
  const { environment = 'web', files = {}, provider = true } = options
  await mkdir(APPS, { recursive: true })
  const root = await mkdtemp(join(APPS, 'app-'))
  for (const [path, contents] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), contents)
  }
  const config: Record<string, unknown> = {}
  if (options.durable !== undefined) config.durable = options.durable
  if (options.lucid) config.database = lucidConfig(options.lucid)
  if (options.redis) config.redis = options.redis
  const providers = [
    ...(options.redis ? [() => import('@adonisjs/redis/redis_provider')] : []),
    ...(options.lucid ? [() => import('@adonisjs/lucid/database_provider')] : []),
    ...(provider ? [() => import('../../providers/durable_provider.ts')] : []),
  ]
  const ignitor = new IgnitorFactory()
    .withCoreProviders()
    .withCoreConfig()
    .merge({ config, rcFileContents: { providers } })
    .create(pathToFileURL(`${root}/`), { importer: (path) => importIn(root, path) })
  const app = ignitor.createApp(environment)
  const test = getActiveTest()
  test?.cleanup(async () => {
    await app.terminate()
    await rm(root, { recursive: true, force: true })
  })
  await app.init()
  await options.prepare?.(app)
  return app
}

function importIn(root: string, path: string): Promise<unknown> {
  const isRelative = path.startsWith('./') || path.startsWith('../')
  return import(isRelative ? pathToFileURL(join(root, path)).href : path)
}

function lucidConfig(given: true | object) {
  if (given !== true) return given
  return defineLucidConfig({
    connection: 'sqlite',
    connections: {
      sqlite: {
        client: 'better-sqlite3',
        connection: { filename: ':memory:' },
        useNullAsDefault: true,
      },
    },
  })
}
