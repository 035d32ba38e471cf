import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Assert } from '@japa/assert'
import { getActiveTestOrFail, test } from '@japa/runner'
import { build, installIntoShop, isBuildStale } from '../../scripts/demo/package.ts'
import { ioRedis, redisUrl } from '../helpers/redis.ts'

const ROOT = join(import.meta.dirname, '../..')
const TYPESCRIPT = join(ROOT, 'node_modules/typescript/bin/tsc')

/** What `.env` would hold. */
const SHOP_ENV = {
  HOST: '127.0.0.1',
  PORT: '3333',
  LOG_LEVEL: 'error',
  APP_KEY: 'k'.repeat(32),
  APP_URL: 'http://127.0.0.1:3333',
}

/** Starts a script with the Node that runs the tests; it does not outlive the test. */
function start(args: string[], env: NodeJS.ProcessEnv = {}, cwd = ROOT) {
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  getActiveTestOrFail().cleanup(async () => {
    child.kill('SIGTERM')
    await ended
  })
  return { child, ended, output: () => output }
}

const redis = (await redisUrl()) ?? undefined
/** Besides the one that needs no flag. */
const TRANSPORTS = redis === undefined ? ['db'] : ['db', 'bullmq', 'queue']

function assertRight(assert: Assert, code: number | null, text: string): void {
  assert.equal(code, 0, text)
  assert.match(text, /killed worker 1 with SIGKILL while it wraps vase-6/)
  assert.match(text, /^ +parcel:wrap +completed +2x {2}worker 1, worker 2$/m)
  assert.match(text, /^ +compensate:payment:hold +completed +1x {2}worker \d$/m)
  assert.match(text, /^tent-3 +1x {2}249\.00 +1x {2}-249\.00$/m)
  assert.lengthOf(text.match(/^[a-z]+-\d +1x {2}\d+\.00 +-$/gm) ?? [], 5, text)
  assert.match(text, /^All 6 orders are right/m)
  assert.notMatch(text, /WRONG/)
}

async function assertNoKeys(assert: Assert, text: string): Promise<void> {
  const [, prefix] = /\(prefix (durable-shop-\w+)\)/.exec(text) ?? []
  assert.isDefined(prefix, text)
  assert.deepEqual(await ioRedis(redis!).keys(`*${prefix}*`), [])
}

test.group('demo | npm run demo', (group) => {
  group.tap((t) => t.timeout(120_000))
  // So that the time is that of the demo, which would do the same.
  group.setup(async () => {
    if (isBuildStale()) await build()
  })

  test('ends with every order right after a worker was killed', async ({ assert }) => {
    const demo = start(['scripts/demo.mjs'])
    const code = await demo.ended
    assertRight(assert, code, demo.output())
  })

  test('ends the same over {$self}, with every step in a worker')
    .with(TRANSPORTS)
    .run(async ({ assert }, transport) => {
      const demo = start(['scripts/demo.mjs', `--transport=${transport}`], { REDIS_URL: redis })
      const code = await demo.ended
      const text = demo.output()
      assertRight(assert, code, text)
      assert.include(text, `steps are dispatched over ${transport}`)
      assert.notMatch(text, /^ +(payment|parcel):\w+ .*web/m)
      if (transport !== 'db') await assertNoKeys(assert, text)
    })

  test('a transport that there is not ends it at once')
    .with([
      ['--transport=carrier', /^The demo cannot begin: --transport must be .*, not "carrier"$/m],
      ['--transport=', /^The demo cannot begin: --transport must be .*, not ""$/m],
      ['--transports=db', /^The demo cannot begin: Unknown option '--transports'/m],
    ] as const)
    .run(async ({ assert }, [option, sentence]) => {
      const demo = start(['scripts/demo.mjs', option])
      const code = await demo.ended
      assert.equal(code, 1)
      assert.match(demo.output(), sentence)
      assert.notMatch(demo.output(), /installing/)
    })

  test('a Redis that there is not ends it at once', async ({ assert }) => {
    const nobody = { REDIS_URL: 'redis://127.0.0.1:1' }
    const demo = start(['scripts/demo.mjs', '--transport=bullmq'], nobody)
    const code = await demo.ended
    assert.equal(code, 1)
    assert.match(demo.output(), /bullmq needs Redis, and the one at 127\.0\.0\.1:1 does not answer/)
    assert.notMatch(demo.output(), /installing/)
  })

  test('leaves no process and no folder behind when it is interrupted', async ({ assert, fs }) => {
    await fs.mkdir('temporary')
    const temporary = join(fs.basePath, 'temporary')
    const demo = start(['scripts/demo.mjs'], { TMPDIR: temporary, TEMP: temporary })
    const url = await new Promise<string>((resolve, reject) => {
      demo.child.stdout.on('data', () => {
        const found = /starting the shop at (\S+) /.exec(demo.output())
        if (found) resolve(found[1])
      })
      void demo.ended.then(() => reject(new Error(demo.output())))
    })
    const pids = [...demo.output().matchAll(/\(pid (\d+)\)/g)].map(([, pid]) => Number(pid))
    demo.child.kill('SIGINT')

    assert.equal(await demo.ended, 130)
    assert.lengthOf(pids, 2)
    for (const pid of pids) await gone(pid)
    await assert.rejects(() => fetch(`${url}/report`))
    const left = await readdir(temporary)
    assert.isUndefined(left.find((name) => name.startsWith('durable-shop-')))
  })

  test('the workflows of the shop survive a crash at every write', async ({ assert }) => {
    await installIntoShop()
    const env = { ...SHOP_ENV, NODE_ENV: 'test', NODE_TEST_CONTEXT: undefined }
    const args = ['--import=@poppinss/ts-exec', '--test', 'tests/checkout_workflow.spec.ts']
    const tests = start(args, env, join(ROOT, 'examples/shop'))
    const code = await tests.ended
    assert.equal(code, 0, tests.output())
    assert.match(tests.output(), /^\S+ pass 6$/m)
  })

  test('the shop has the types that the published declarations promise', async ({ assert }) => {
    const installed = join(ROOT, 'examples/shop/node_modules/@adonis-agora/durable')
    assert.isTrue(existsSync(installed), 'run the demo once: it installs the package')
    const check = start([TYPESCRIPT, '--noEmit', '--project', 'examples/shop'])
    const code = await check.ended
    assert.equal(code, 0, check.output())
  })
})

/** Resolves when no process has this id any more; a test that waits in vain times out. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0)
    } catch {
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
