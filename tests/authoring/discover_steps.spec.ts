/*
 * Serving steps from directories of real modules, and from exported values.
 */
import { join } from 'node:path'
import { test } from '@japa/runner'
import { z } from 'zod'
import { registerSteps, registerStepsFromDir } from '../../src/authoring/discover_steps.ts'
import { defineStep, Step } from '../../src/authoring/step.ts'
import { DuplicateDiscoveryError } from '../../src/errors.ts'
import { failureOf, ServedSteps, stepImport, tree } from './tree.ts'

test.group('Discovery | steps of a directory', () => {
  test('serves handles and methods of every module below', async ({ assert }) => {
    const root = await tree({
      'payment_steps.ts':
        `${stepImport}export default class PaymentSteps {\n` +
        `  rate = 2\n` +
        `  @Step({ retries: 3, timeoutMs: 500 }) async charge(input: number) { return input * this.rate }\n` +
        `  @Step('payment:refund') refund(input: number) { return -input }\n` +
        `  helper() {}\n}\n` +
        `export const plain = () => 1\nexport const data = { a: 1 }\n`,
      'mail/send.ts': `${stepImport}export const send = defineStep('mail:send', (to: string) => 'to ' + to)\n`,
      'mail/send.js': 'throw new Error("never imported")',
    })
    const server = new ServedSteps()
    const metas = await registerStepsFromDir(server, root)
    assert.deepEqual(server.names, ['mail:send', 'PaymentSteps.charge', 'payment:refund'])
    assert.deepEqual(metas, [
      { name: 'mail:send', file: join(root, 'mail/send.ts') },
      {
        name: 'PaymentSteps.charge',
        config: { retries: 3, timeoutMs: 500 },
        file: join(root, 'payment_steps.ts'),
      },
      { name: 'payment:refund', file: join(root, 'payment_steps.ts') },
    ])
    assert.equal(await server.call('PaymentSteps.charge', 4), 8)
    assert.equal(await server.call('payment:refund', 4), -4)
    assert.equal(await server.call('mail:send', 'me'), 'to me')
  })

  test('schemas are enforced around what is served', async ({ assert }) => {
    const zod = JSON.stringify(import.meta.resolve('zod'))
    const root = await tree({
      'steps.ts':
        `${stepImport}import { z } from ${zod}\n` +
        `export default class Pay { @Step({ input: z.object({ amount: z.coerce.number() }), output: z.string() })\n` +
        `  async charge(input: { amount: number }) { return input.amount > 5 ? input.amount : String(input.amount) } }\n`,
    })
    const server = new ServedSteps()
    await registerStepsFromDir(server, root)
    assert.equal(await server.call('Pay.charge', { amount: '3' }), '3')
    assert.containSubset(await failureOf(server.call('Pay.charge', {})), { code: 'invalid_input' })
    assert.containSubset(await failureOf(server.call('Pay.charge', { amount: 7 })), {
      code: 'invalid_output',
    })
  })

  test('one name in two directories is refused with both files', async ({ assert }) => {
    const root = await tree({
      'a/first.ts': `${stepImport}export const other = defineStep('other', () => 1)\n`,
      'a/steps.ts': `${stepImport}export const charge = defineStep('charge', () => 1)\n`,
      'b/steps.ts': `${stepImport}export class Pay { @Step('charge') run() {} }\n`,
    })
    const server = new ServedSteps()
    const failure = await failureOf(
      registerStepsFromDir(server, [join(root, 'a'), join(root, 'b')])
    )
    assert.instanceOf(failure, DuplicateDiscoveryError)
    const files = [join(root, 'a/steps.ts'), join(root, 'b/steps.ts')]
    assert.containSubset(failure, { kind: 'step', id: 'charge', files })
    for (const file of files) assert.include(failure.message, file)
    assert.deepEqual(server.names, [])
  })

  test('overlapping directories and re-exports serve once', async ({ assert }) => {
    const root = await tree({
      'a/steps.ts': `${stepImport}export const charge = defineStep('charge', () => 1)\n`,
      'index.ts': `export * from './a/steps.ts'\n`,
    })
    const server = new ServedSteps()
    const metas = await registerStepsFromDir(server, [root, join(root, 'a')])
    assert.deepEqual(
      metas.map(({ name }) => name),
      ['charge']
    )
  })

  test('an abstract base is served by the class that extends it', async ({ assert }) => {
    const root = await tree({
      'base_steps.ts':
        `${stepImport}export abstract class ImportSteps {\n` +
        `  constructor() { if (new.target === ImportSteps) throw new Error('abstract') }\n` +
        `  abstract source: string\n` +
        `  @Step() async fetch() { return 'fetched ' + this.source }\n` +
        `  @Step() async parse() { return 'base' }\n}\n`,
      'shop_steps.ts':
        `${stepImport}import { ImportSteps } from './base_steps.ts'\n` +
        `export default class ShopSteps extends ImportSteps {\n` +
        `  source = 'shop'\n` +
        `  async parse() { return 'override' }\n` +
        `  @Step() async sell() { return this.source }\n}\n`,
    })
    const server = new ServedSteps()
    await registerStepsFromDir(server, root)
    assert.sameMembers(server.names, ['ImportSteps.fetch', 'ImportSteps.parse', 'ShopSteps.sell'])
    assert.equal(await server.call('ImportSteps.fetch'), 'fetched shop')
    assert.equal(await server.call('ImportSteps.parse'), 'override')
    assert.equal(await server.call('ShopSteps.sell'), 'shop')
  })

  test('a module that throws fails with its file, a missing directory holds nothing', async ({
    assert,
  }) => {
    const root = await tree({
      'a.ts': `${stepImport}export const charge = defineStep('charge', () => 1)\n`,
      'b.ts': `${stepImport}export const broken = defineStep('', () => 1)\n`,
    })
    const server = new ServedSteps()
    const failure = await failureOf(registerStepsFromDir(server, root))
    assert.equal(failure.code, 'discovery_import')
    assert.include(failure.message, join(root, 'b.ts'))
    assert.deepEqual(server.names, [])
    assert.deepEqual(await registerStepsFromDir(server, join(root, 'missing')), [])
  })
})

test.group('Discovery | exported steps', () => {
  class Mailer {
    constructor(readonly sender: string) {}

    @Step({ name: 'mail:send', retries: 2 })
    async send(to: string) {
      return `${this.sender} to ${to}`
    }

    @Step('mail:check')
    async check() {
      return this.sender
    }
  }
  const resize = defineStep('image:resize', (input: number) => input / 2)

  test('are taken as values, as modules and as one module', async ({ assert }) => {
    const names = ['mail:send', 'mail:check', 'image:resize']
    for (const exports of [
      [Mailer, resize, undefined, 'text', 1],
      [{ Mailer }, { default: resize, again: Mailer }],
      { Mailer, resize },
      new Set([Mailer, resize]),
    ]) {
      const server = new ServedSteps()
      const metas = await registerSteps(server, exports)
      assert.deepEqual(server.names, names)
      assert.deepEqual(metas[0], { name: 'mail:send', config: { retries: 2 } })
    }
  })

  test('one instance of each class, built by the factory', async ({ assert }) => {
    const built: string[] = []
    const server = new ServedSteps()
    await registerSteps(server, [Mailer, resize], async (target) => {
      built.push(target.name)
      return new target('app')
    })
    assert.deepEqual(built, ['Mailer'])
    assert.equal(await server.call('mail:send', 'me'), 'app to me')
    assert.equal(await server.call('mail:check'), 'app')
    assert.equal(await server.call('image:resize', 8), 4)
  })

  test('nothing is served when a class cannot be built', async ({ assert }) => {
    const server = new ServedSteps()
    await assert.rejects(
      () => registerSteps(server, [resize, Mailer], () => Promise.reject(new Error('no binding'))),
      'no binding'
    )
    assert.deepEqual(server.names, [])
  })

  test('a method that is also exported by itself keeps its instance', async ({ assert }) => {
    for (const exports of [
      [Mailer.prototype.send, Mailer],
      [Mailer, Mailer.prototype.send],
    ]) {
      const server = new ServedSteps()
      await registerSteps(server, exports, (target) => new target('app'))
      assert.equal(await server.call('mail:send', 'me'), 'app to me')
    }
  })

  test('two siblings that inherit one step are refused, two that declare their own are not', async ({
    assert,
  }) => {
    class Provider {
      @Step()
      async charge() {
        return this.constructor.name
      }
    }
    class Stripe extends Provider {}
    class Paypal extends Provider {}
    const server = new ServedSteps()
    const failure = await failureOf(registerSteps(server, [Stripe, Paypal]))
    assert.instanceOf(failure, DuplicateDiscoveryError)
    assert.containSubset(failure, { id: 'Provider.charge', files: ['Stripe', 'Paypal'] })
    assert.deepEqual(server.names, [])

    class Adyen extends Provider {
      @Step()
      override async charge() {
        return super.charge()
      }
    }
    await registerSteps(server, [Stripe, Adyen])
    assert.equal(await server.call('Provider.charge'), 'Stripe')
    assert.equal(await server.call('Adyen.charge'), 'Adyen')
  })

  test('the most derived of several classes serves, in any order', async ({ assert }) => {
    class Base {
      @Step('level')
      async level() {
        return 'base'
      }
    }
    class Middle extends Base {}
    class Leaf extends Middle {
      override async level() {
        return `leaf of ${await super.level()}`
      }
    }
    for (const exports of [
      [Base, Middle, Leaf],
      [Leaf, Base, Middle],
    ]) {
      const server = new ServedSteps()
      await registerSteps(server, exports)
      assert.equal(await server.call('level'), 'leaf of base')
    }
  })

  test('one class with one name twice is refused', async ({ assert }) => {
    class Twice {
      @Step('same')
      async one() {}

      @Step('same')
      async two() {}
    }
    const failure = await failureOf(registerSteps(new ServedSteps(), [Twice]))
    assert.instanceOf(failure, DuplicateDiscoveryError)
  })

  test('handles of another copy of the package are served', async ({ assert }) => {
    const copy = '../../src/authoring/step.ts?copy=steps'
    const other = (await import(copy)) as { defineStep: typeof defineStep; Step: typeof Step }
    assert.notStrictEqual(other.defineStep, defineStep)
    class Foreign {
      @other.Step({ input: z.string() })
      async greet(name: string) {
        return `hello ${name}`
      }
    }
    const server = new ServedSteps()
    await registerSteps(server, [other.defineStep('foreign', () => 1), Foreign])
    assert.deepEqual(server.names, ['foreign', 'Foreign.greet'])
    assert.equal(await server.call('Foreign.greet', 'you'), 'hello you')
    assert.containSubset(await failureOf(server.call('Foreign.greet', 1)), {
      code: 'invalid_input',
    })
  })
})
