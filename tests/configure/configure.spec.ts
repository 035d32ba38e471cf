import Configure from '@adonisjs/core/commands/configure'
import { test } from '@japa/runner'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { createApp } from '../adonis/app.ts'

const INDEX = fileURLToPath(new URL('../../index.ts', import.meta.url))

const APP_FILES = {
  '.env': '',
  'tsconfig.json': '{ "extends": "@adonisjs/tsconfig/tsconfig.app.json" }',
  'start/env.ts': `export default await Env.create(new URL('../', import.meta.url), {})`,
  'adonisrc.ts': `import { defineConfig } from '@adonisjs/core/app'\n\nexport default defineConfig({})\n`,
}

const manifest = (contents: object) => ({
  'package.json': JSON.stringify({ name: 'app', type: 'module', ...contents }, null, 2),
})
const WITH_LUCID = manifest({ dependencies: { '@adonisjs/lucid': '^22.0.0' } })
const WITHOUT_LUCID = manifest({ dependencies: {} })

async function application(files: Record<string, string>) {
  const app = await createApp({
    environment: 'console',
    provider: false,
    files: { ...APP_FILES, ...files },
  })
  await app.boot()
  return {
    read: (path: string) => readFile(app.makePath(path), 'utf8'),
    list: (path: string) => readdir(app.makePath(path)).catch(() => []),
    async configure(args: string[] = []) {
      const ace = await app.container.make('ace')
      ace.ui.switchMode('raw')
      const command = await ace.create(Configure, [INDEX, ...args])
      await command.exec()
      command.assertSucceeded()
      return command.logger.getLogs().map(({ message }) => message)
    },
  }
}

test.group('Configure', (group) => {
  group.tap((t) => t.timeout(30_000))

  test('registers the provider, the commands and the hooks', async ({ assert }) => {
    const { configure, read } = await application(WITH_LUCID)
    await configure()
    const rcFile = await read('adonisrc.ts')
    assert.include(rcFile, `() => import('@adonis-agora/durable/durable_provider')`)
    assert.include(rcFile, `() => import('@adonis-agora/durable/commands')`)
    const init = /init: \[([^\]]*)\]/.exec(rcFile)![1]
    assert.deepEqual(
      [...init.matchAll(/import\('([^']*)'\)/g)].map(([, module]) => module),
      ['@adonis-agora/durable/hooks/workflows', '@adonis-agora/durable/hooks/steps']
    )
  })

  test('with Lucid: a config that keeps runs in the database, and a migration', async ({
    assert,
  }) => {
    const { configure, read, list } = await application(WITH_LUCID)
    await configure()
    const config = await read('config/durable.ts')
    assert.include(
      config,
      `import { defineConfig, stores, transports } from '@adonis-agora/durable'`
    )
    assert.include(config, `  store: 'lucid',`)
    const migrations = await list('database/migrations')
    const names = migrations.sort().map((file) => /^\d{13}_(.*)\.ts$/.exec(file)?.[1])
    assert.deepEqual(names, [
      'create_durable_tables',
      'create_durable_transport_tables',
      'create_durable_transport_messages',
    ])
  })

  test('without Lucid: a config in memory, and no migration that could not compile', async ({
    assert,
  }) => {
    const { configure, read, list } = await application(WITHOUT_LUCID)
    await configure()
    const config = await read('config/durable.ts')
    assert.include(config, `import { defineConfig, transports } from '@adonis-agora/durable'`)
    assert.notMatch(config, /^ {2}store:/m)
    assert.include(config, `  transport: 'memory',`)
    assert.isEmpty(await list('database/migrations'))
  })

  test('adds the import aliases and keeps the rest of package.json', async ({ assert }) => {
    const { configure, read } = await application(
      manifest({ imports: { '#models/*': './app/models/*.js' }, scripts: { dev: 'x' } })
    )
    await configure()
    const text = await read('package.json')
    assert.deepEqual(JSON.parse(text), {
      name: 'app',
      type: 'module',
      imports: {
        '#models/*': './app/models/*.js',
        '#workflows/*': './app/workflows/*.js',
        '#steps/*': './app/steps/*.js',
      },
      scripts: { dev: 'x' },
    })
    assert.match(text, /^ {2}"name"/m)
  })

  test('an alias that is there stays as it is', async ({ assert }) => {
    const imports = { '#steps/*': './modules/steps/*.js', '#workflows/*': './flows/*.js' }
    const files = manifest({ imports })
    const { configure, read } = await application(files)
    await configure()
    assert.equal(await read('package.json'), files['package.json'])
  })

  test('without a package.json that can be read it says what to add', async ({ assert }) => {
    const broken: Record<string, string> = { 'package.json': '{ broken' }
    for (const files of [{}, broken]) {
      const { configure, list } = await application(files)
      const logs = await configure()
      assert.include(logs.join('\n'), `"#workflows/*": "./app/workflows/*.js"`)
      assert.include(logs.join('\n'), `"#steps/*": "./app/steps/*.js"`)
      // Nothing is known of Lucid then: the application decides.
      assert.lengthOf(await list('database/migrations'), 3)
    }
  })

  test('a second time changes nothing', async ({ assert }) => {
    const { configure, read, list } = await application(WITH_LUCID)
    await configure()
    const state = async () => [
      await read('adonisrc.ts'),
      await read('config/durable.ts'),
      await read('package.json'),
      ...(await list('database/migrations')),
    ]
    const before = await state()
    await configure()
    assert.deepEqual(await state(), before)
  })

  test('a migration by another name of the same duty is not published twice', async ({
    assert,
  }) => {
    const existing = [
      '1500000000000_create_durable_tables.ts',
      '1500000000001_create_durable_transport_messages.ts',
    ]
    const files = existing.map((name) => [`database/migrations/${name}`, '// mine'])
    const { configure, list } = await application({ ...WITH_LUCID, ...Object.fromEntries(files) })
    await configure()
    const migrations = await list('database/migrations')
    assert.includeMembers(migrations, existing)
    const [added, ...others] = migrations.filter((name) => !existing.includes(name))
    assert.match(added, /^\d{13}_create_durable_transport_tables\.ts$/)
    assert.isEmpty(others)
  })

  test('says what to do next', async ({ assert }) => {
    const withLucid = await application(WITH_LUCID)
    const steps = await withLucid.configure()
    assert.include(steps.join('\n'), 'node ace migration:run')
    assert.include(steps.join('\n'), 'node ace durable:work')
    const withoutLucid = await application(WITHOUT_LUCID)
    const others = await withoutLucid.configure()
    assert.include(others.join('\n'), 'configure @adonisjs/lucid, then choose stores.lucid()')
  })
})
