import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from '@japa/runner'
import { readImports } from '../helpers/import_graph.ts'

const ROOT = join(import.meta.dirname, '../..')
const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** Needs a booted application at import time. */
const NEEDS_AN_APPLICATION = ['./services/main']

function checkBuild(folder: string) {
  const script = join(ROOT, 'scripts/check_build.mjs')
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, folder], {
    encoding: 'utf8',
  })
  return { status, output: stdout + stderr }
}

test.group('package | check of the build', () => {
  const manifest = JSON.stringify({
    main: './build/index.js',
    exports: {
      '.': { types: './build/index.d.ts', default: './build/index.js' },
      './commands/*': './build/commands/*.js',
      './package.json': './package.json',
    },
  })
  const complete = [
    'build/index.js',
    'build/index.d.ts',
    'build/commands/commands.json',
    'build/commands/main.js',
    'build/commands/main.d.ts',
    'build/stubs/config/durable.stub',
  ]

  test('passes a build that has everything', async ({ assert, fs }) => {
    await fs.create('package.json', manifest)
    await fs.create('stubs/config/durable.stub', '')
    for (const file of complete) await fs.create(file, '')
    assert.deepEqual(checkBuild(fs.basePath), { status: 0, output: 'The build is complete.\n' })
  })

  for (const absent of complete) {
    test(`fails when ${absent} is missing`, async ({ assert, fs }) => {
      await fs.create('package.json', manifest)
      await fs.create('stubs/config/durable.stub', '')
      for (const file of complete) if (file !== absent) await fs.create(file, '')
      const { status, output } = checkBuild(fs.basePath)
      assert.equal(status, 1)
      assert.include(output, absent)
    })
  }
})

test.group('package | peers', () => {
  // A second copy of ioredis beside that of the application breaks every `instanceof`.
  test('what only some applications need is an optional peer, and never a dependency', ({
    assert,
  }) => {
    const { dependencies, peerDependencies, peerDependenciesMeta } = MANIFEST
    const peers = Object.keys(peerDependencies)
    assert.includeMembers(peers, ['bullmq', 'ioredis', '@adonisjs/queue', '@adonisjs/redis'])
    assert.deepEqual(
      peers.filter((name) => !peerDependenciesMeta[name]?.optional),
      ['@adonisjs/core']
    )
    for (const peer of peers) assert.notProperty(dependencies ?? {}, peer)
  })
})

if (!existsSync(join(ROOT, 'build'))) {
  console.log('skipped: the package as built, there is no build (npm run build makes one)')
} else {
  test.group('package | as built', () => {
    test('holds every file that package.json names', ({ assert }) => {
      assert.deepEqual(checkBuild(ROOT), { status: 0, output: 'The build is complete.\n' })
    })

    test('no compiled file imports TypeScript', ({ assert }) => {
      const files = globSync('build/**/*.js', { cwd: ROOT })
      const imports = files.flatMap((file) =>
        readImports(file, readFileSync(join(ROOT, file), 'utf8'))
      )
      const left = imports.filter(({ specifier }) => /^\.+\/.*\.ts$/.test(specifier))
      assert.isAbove(files.length, 0)
      assert.deepEqual(
        left.map(({ from, specifier }) => `${from}: ${specifier}`),
        []
      )
    })

    for (const [door, target] of Object.entries<any>(MANIFEST.exports)) {
      if (!target.default || door.includes('*') || NEEDS_AN_APPLICATION.includes(door)) continue
      // A missing file is named once, above.
      if (!existsSync(join(ROOT, target.default))) continue
      test(`"${door}" can be imported`, async ({ assert }) => {
        const module = await import(pathToFileURL(join(ROOT, target.default)).href)
        assert.isNotEmpty(Object.keys(module))
      }).timeout(30_000)
    }
  })
}
