import { RuntimeException } from '@adonisjs/core/exceptions'
import type { ApplicationService } from '@adonisjs/core/types'
import { test } from '@japa/runner'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type RunGateway, WorkflowEngine } from '../../index.ts'
import {
  captureApplication,
  capturedApplication,
  findBootedApp,
  getBootedApp,
  releaseApplication,
} from '../../src/adonis/booted_app.ts'
import { bootApp, createApp } from './app.ts'

/** A fresh evaluation of the module, as another process would have. */
let copies = 0
const importService = (): Promise<{
  default: WorkflowEngine | undefined
  runGateway: RunGateway | undefined
}> => import(`../../services/main.ts?copy=${copies++}`)

test.group('services/main', () => {
  test('is the engine of the booted application', async ({ assert }) => {
    const app = await bootApp()
    const service = await importService()
    assert.strictEqual(service.default, await app.container.make(WorkflowEngine))
    const gateway = await app.container.make('@adonis-agora/durable:run-gateway')
    assert.strictEqual(service.runGateway, gateway)
    assert.deepEqual(gateway.topology(), { role: 'standalone' })
  })

  test('may be imported while the application boots, and is there once it has', async ({
    assert,
  }) => {
    const app = await createApp()
    const seen: unknown[] = []
    captureApplication(app)
    const service = await importService()
    seen.push(service.default)
    await app.boot()
    seen.push(service.default)
    assert.deepEqual(seen, [undefined, await app.container.make(WorkflowEngine)])
  })

  test('waits for a provider that registers later', async ({ assert }) => {
    const importing = importService()
    const app = await bootApp()
    const service = await importing
    assert.strictEqual(service.default, await app.container.make(WorkflowEngine))
  })

  test('follows the application when the first one is gone', async ({ assert }) => {
    const first = await bootApp()
    const service = await importService()
    const engine = service.default
    await first.terminate()
    const second = await bootApp()
    assert.notStrictEqual(service.default, engine)
    assert.strictEqual(service.default, await second.container.make(WorkflowEngine))
  })

  test('rejects after 5 s with the fix when no provider registers', ({ assert }) => {
    const script = `
      const alive = setTimeout(() => {}, 60_000)
      await import('./services/main.ts').catch((error) => console.log(error.message))
      clearTimeout(alive)
    `
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--import=@poppinss/ts-exec', '--input-type=module', '--eval', script],
      { cwd: fileURLToPath(new URL('../../', import.meta.url)), encoding: 'utf8' }
    )
    assert.include(
      stdout,
      'no application has registered "@adonis-agora/durable/durable_provider"',
      stderr
    )
    assert.include(stdout, 'node ace configure @adonis-agora/durable')
  }).timeout(30_000)
})

test.group('Application of the process', () => {
  const fakeApp = () =>
    ({ isTerminated: false, booted: async () => {} }) as unknown as {
      isTerminated: boolean
    } & ApplicationService
  const impatient = {
    after: (ms: number, fn: () => void) => {
      waits.push(ms)
      queueMicrotask(fn)
      return () => {}
    },
    every: () => () => {},
  }
  const waits: number[] = []

  test('the first one stays, until it is released or terminated', ({ assert, cleanup }) => {
    const [first, second, third] = [fakeApp(), fakeApp(), fakeApp()]
    cleanup(() => releaseApplication(third))
    captureApplication(first)
    captureApplication(second)
    assert.strictEqual(getBootedApp(), first)
    releaseApplication(second)
    assert.strictEqual(getBootedApp(), first)
    releaseApplication(first)
    assert.isUndefined(findBootedApp())
    captureApplication(second)
    Object.assign(second, { isTerminated: true })
    captureApplication(third)
    assert.strictEqual(getBootedApp(), third)
  })

  test('asking for one that is not there throws the fix', ({ assert }) => {
    assert.throws(() => getBootedApp(), /Add it to the providers in adonisrc\.ts/)
  })

  test('waiting ends with the fix after 5 s', async ({ assert }) => {
    try {
      await capturedApplication(impatient)
      assert.fail('did not reject')
    } catch (error) {
      assert.instanceOf(error, RuntimeException)
      assert.deepEqual(waits, [5000])
    }
  })

  test('no timer is set when it is there', async ({ assert, cleanup }) => {
    const app = fakeApp()
    captureApplication(app)
    cleanup(() => releaseApplication(app))
    waits.length = 0
    assert.strictEqual(await capturedApplication(impatient), app)
    assert.deepEqual(waits, [])
  })
})
