/*
 * The testing kit in three projects, each with another test runner: `fixtures/consumers`.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { getActiveTestOrFail, test } from '@japa/runner'
import { STATE_STORE_CASES } from '../../src/testing/contracts/state_store.ts'
import { Consumer } from './consumer.ts'

const ROOT = join(import.meta.dirname, '../..')
const BUILT = existsSync(join(ROOT, 'build/src/testing/main.js'))

/** How each runner is started, and how it counts what passed. */
const RUNNERS = [
  {
    name: 'japa',
    args: () => ['run.js'],
    passed: /Tests +(\d+) passed/,
  },
  {
    name: 'vitest',
    args: () => [join(folderOf('vitest')!, 'vitest.mjs'), 'run', '--testTimeout=60000'],
    passed: /Tests +(?:1 failed \| )?(\d+) passed/,
    needs: 'vitest',
  },
  {
    name: 'node_test',
    args: () => ['--test', 'kit.spec.js'],
    passed: /^. pass (\d+)$/m,
  },
]

/** Checks of `fixtures/consumers/shared/checks.js`. */
const CHECKS = 5

/** Where a package is that the projects can import. */
function folderOf(name: string): string | undefined {
  try {
    const from = createRequire(join(ROOT, 'package.json'))
    return dirname(from.resolve(`${name}/package.json`))
  } catch {
    return undefined
  }
}

function skipped(reason: string): void {
  if (process.env.CI === 'true') throw new Error(reason)
  console.log(`skipped: ${reason}`)
}

if (!BUILT) {
  skipped('the testing kit in other projects: there is no build (npm run build makes one)')
} else {
  test.group('package | the testing kit in a project with', (group) => {
    group.tap((t) => t.timeout(180_000))

    for (const { name, args, passed, needs } of RUNNERS) {
      if (needs && !folderOf(needs)) {
        skipped(`the testing kit with ${name}: it is not installed (npm ci)`)
        continue
      }
      test(name, async ({ assert }) => {
        const project = await Consumer.create(name)
        getActiveTestOrFail().cleanup(() => project.remove())

        const good = await project.node(args())
        assert.equal(good.code, 0, good.output)
        assert.equal(Number(passed.exec(good.output)?.[1]), CHECKS + STATE_STORE_CASES.length)

        const bad = await project.node(args(), { WITH_A_FAILURE: '1' })
        assert.notEqual(bad.code, 0)
        assert.match(bad.output, /a careless workflow is asserted to survive/)
        assert.match(
          bad.output,
          /1\. non determinism: run explored, position 1: recorded is "(left|right)" \(local\)/
        )
      })
    }

    test('no runner at all, and neither Japa nor vitest installed', async ({ assert }) => {
      const project = await Consumer.create('node_test')
      getActiveTestOrFail().cleanup(() => project.remove())
      await project.write(
        'alone.js',
        `import { register } from 'node:module'
         register('data:text/javascript,' + encodeURIComponent(\`
           export async function resolve(name, context, next) {
             if (/^(@japa|vitest)/.test(name)) throw new Error(name + ' was imported')
             return next(name, context)
           }\`))
         const { checks } = await import('./checks.js')
         for (const check of Object.values(checks)) await check()
         await import('@adonis-agora/durable/testing/conformance')
         console.log('all good')`
      )
      const { code, output } = await project.node(['alone.js'])
      assert.equal(code, 0, output)
      assert.match(output, /all good/)
    })
  })
}
