import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { getActiveTestOrFail, test } from '@japa/runner'
import { build, installIntoShop, isBuildStale } from '../../scripts/demo/package.ts'

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

test.group('demo | npm run demo', (group) => {
  group.tap((t) => t.timeout(120_000))
  // So that the time is that of the demo, which would do the same.
  group.setup(async () => {
    if (isBuildStale()) await build()
  })

  test('ends with every order right after a worker was killed', async ({ assert }) => {
    const demo = start(['scripts/demo.mjs'])
    const code = await demo.ended
    const text = demo.output()

    assert.equal(code, 0, text)
    assert.match(text, /killed worker 1 with SIGKILL while it wraps vase-6/)
    assert.match(text, /^ +parcel:wrap +completed +2x {2}worker 1, worker 2$/m)
    assert.match(text, /^ +compensate:payment:hold +completed +1x {2}worker \d$/m)
    assert.match(text, /^tent-3 +1x {2}249\.00 +1x {2}-249\.00$/m)
    assert.lengthOf(text.match(/^[a-z]+-\d +1x {2}\d+\.00 +-$/gm) ?? [], 5, text)
    assert.match(text, /^All 6 orders are right/m)
    assert.notMatch(text, /WRONG/)
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
