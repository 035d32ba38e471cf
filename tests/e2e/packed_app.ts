/*
 * An application made by hand, outside the repository, with the package installed from its tarball: what a
 * user gets. One for a whole suite; it costs an `npm install`.
 */
import { execFile, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { getActiveTestOrFail } from '@japa/runner'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)

const ENV = {
  ...process.env,
  NODE_ENV: 'development',
  NO_COLOR: '1',
  FORCE_COLOR: '0',
  // The Node of the tests, also for `#!/usr/bin/env node`.
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
}

const FILES = {
  '.env': [
    'NODE_ENV=development',
    'HOST=localhost',
    'PORT=3333',
    'LOG_LEVEL=info',
    `APP_KEY=${'k'.repeat(32)}`,
    'APP_URL=http://localhost:3333',
  ].join('\n'),
  'ace.js': `import '@poppinss/ts-exec'\nawait import('./bin/console.js')\n`,
  'bin/console.ts': `
    import { Ignitor, prettyPrintError } from '@adonisjs/core'
    const APP_ROOT = new URL('../', import.meta.url)
    const importer = (path: string) =>
      path.startsWith('.') ? import(new URL(path, APP_ROOT).href) : import(path)
    new Ignitor(APP_ROOT, { importer })
      .tap((app) => {
        app.booting(async () => { await import('#start/env') })
        app.listen('SIGTERM', () => app.terminate())
        app.listenIf(app.managedByPm2, 'SIGINT', () => app.terminate())
      })
      .ace()
      .handle(process.argv.splice(2))
      .catch((error) => {
        process.exitCode = 1
        prettyPrintError(error)
      })`,
  'adonisrc.ts': `import { defineConfig } from '@adonisjs/core/app'

export default defineConfig({
  commands: [() => import('@adonisjs/core/commands'), () => import('@adonisjs/lucid/commands')],
  providers: [
    () => import('@adonisjs/core/providers/app_provider'),
    () => import('@adonisjs/lucid/database_provider'),
  ],
})
`,
  'start/env.ts': `
    import { Env } from '@adonisjs/core/env'
    export default await Env.create(new URL('../', import.meta.url), {})`,
  'config/app.ts': `
    import { defineConfig } from '@adonisjs/core/http'
    export const http = defineConfig({})`,
  'config/encryption.ts': `
    import { defineConfig, drivers } from '@adonisjs/core/encryption'
    export default defineConfig({
      default: 'gcm',
      list: { gcm: drivers.aes256gcm({ id: 'gcm', keys: [process.env.APP_KEY!] }) },
    })`,
  'config/logger.ts': `
    import { defineConfig } from '@adonisjs/core/logger'
    export default defineConfig({
      default: 'app',
      loggers: { app: { enabled: true, name: 'app', level: 'info' } },
    })`,
  'config/database.ts': `
    import app from '@adonisjs/core/services/app'
    import { defineConfig } from '@adonisjs/lucid'
    export default defineConfig({
      connection: 'sqlite',
      connections: {
        sqlite: {
          client: 'better-sqlite3',
          connection: { filename: app.makePath('db.sqlite') },
          useNullAsDefault: true,
          pool: {
            afterCreate(connection: any, done: any) {
              connection.pragma('journal_mode = WAL')
              connection.pragma('busy_timeout = 5000')
              done(null, connection)
            },
          },
          migrations: { naturalSort: true, paths: ['database/migrations'] },
        },
      },
    })`,
  'tsconfig.json': JSON.stringify({
    extends: '@adonisjs/tsconfig/tsconfig.app.json',
    compilerOptions: { rootDir: './', outDir: './build', noEmit: true },
  }),
}

const DEPENDENCIES = [
  '@adonisjs/assembler',
  '@adonisjs/core',
  '@adonisjs/lucid',
  '@adonisjs/tsconfig',
  '@poppinss/ts-exec',
  '@types/luxon',
  '@types/node',
  'better-sqlite3',
  'luxon',
  'typescript',
]

export class PackedApp {
  readonly root: string

  private constructor(root: string) {
    this.root = root
  }

  /** Packs the build and installs it into a fresh application. */
  static async create(): Promise<PackedApp> {
    const app = new PackedApp(await mkdtemp(join(tmpdir(), 'durable-packed-')))
    for (const [path, contents] of Object.entries(FILES)) await app.write(path, contents)
    const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', app.root]
    const { stdout } = await run('npm', pack, { cwd: ROOT })
    const [{ filename }] = JSON.parse(stdout)
    await app.write('package.json', JSON.stringify(await manifestFor(filename), null, 2))
    const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
    await run('npm', ['install', '--prefer-offline', ...quiet], { cwd: app.root })
    return app
  }

  async write(path: string, contents: string): Promise<void> {
    await mkdir(dirname(join(this.root, path)), { recursive: true })
    await writeFile(join(this.root, path), contents)
  }

  read(path: string): Promise<string> {
    return readFile(join(this.root, path), 'utf8')
  }

  /** Runs `node …` to its end; rejects, with what it said, when it fails. */
  async node(args: string[], cwd: string = this.root): Promise<string> {
    try {
      const { stdout, stderr } = await run(process.execPath, args, { cwd, env: ENV })
      return stdout + stderr
    } catch (cause) {
      const { stdout = '', stderr = '' } = cause as { stdout?: string; stderr?: string }
      throw new Error(`node ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause })
    }
  }

  ace(...args: string[]): Promise<string> {
    return this.node(['ace.js', ...args])
  }

  /**
   * Starts `node ace …`, killed at the end of the test at the latest; `ended` answers its exit code,
   * `output` what it has said so far.
   */
  startAce(...args: string[]) {
    const child = spawn(process.execPath, ['ace.js', ...args], { cwd: this.root, env: ENV })
    getActiveTestOrFail().cleanup(() => void child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => (output += chunk))
    }
    const ended = new Promise<number | null>((resolve) => {
      child.on('close', resolve)
    })
    return {
      ended,
      output: () => output,
      signal: (signal: NodeJS.Signals) => void child.kill(signal),
      /** Resolves when the output matches; rejects when the process ends before. */
      async says(pattern: RegExp): Promise<void> {
        while (!pattern.test(output)) {
          const more = new Promise((resolve) => {
            child.stdout.once('data', resolve)
            child.stderr.once('data', resolve)
          })
          const over = await Promise.race([more.then(() => false), ended.then(() => true)])
          if (over && !pattern.test(output)) throw new Error(`ended without ${pattern}:\n${output}`)
        }
      },
    }
  }

  /** A folder in which only the package and what it requires are installed. */
  async withoutPeers(): Promise<string> {
    const bare = join(this.root, '..', `${this.root.split('/').pop()}-bare`)
    const modules = join(bare, 'node_modules')
    for (const scope of ['@adonis-agora', '@adonisjs']) {
      await mkdir(join(modules, scope), { recursive: true })
    }
    // A copy: what it imports is looked for where it lies.
    const installed = join(this.root, 'node_modules')
    await cp(join(installed, '@adonis-agora/durable'), join(modules, '@adonis-agora/durable'), {
      recursive: true,
    })
    await symlink(join(installed, '@adonisjs/core'), join(modules, '@adonisjs/core'))
    await writeFile(join(bare, 'package.json'), '{ "type": "module" }')
    return bare
  }

  async remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true })
    await rm(`${this.root}-bare`, { recursive: true, force: true })
  }
}

/** Dependencies in the versions of this repository. */
async function manifestFor(tarball: string): Promise<object> {
  const own = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const ranges: Record<string, string> = own.devDependencies
  return {
    name: 'packed-app',
    version: '1.0.0',
    private: true,
    type: 'module',
    imports: { '#start/*': './start/*.js', '#workflows/*': './app/workflows/*.js' },
    dependencies: {
      [own.name]: `file:./${tarball}`,
      ...Object.fromEntries(DEPENDENCIES.map((name) => [name, ranges[name]])),
    },
  }
}
