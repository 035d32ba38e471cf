import { test } from '@japa/runner'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import MakeWorkflow from '../../commands/make_workflow.ts'
import { createApp } from '../adonis/app.ts'

async function make(args: string[], files: Record<string, string> = {}) {
  const app = await createApp({ environment: 'console', files })
  await app.boot()
  const ace = await app.container.make('ace')
  ace.ui.switchMode('raw')
  const command = await ace.create(MakeWorkflow, args)
  await command.exec()
  const read = (path: string) => readFile(app.makePath(path), 'utf8')
  return { app, command, read }
}

test.group('make:workflow', () => {
  for (const [name, file, className, workflow] of [
    ['order', 'app/workflows/order_workflow.ts', 'OrderWorkflow', 'order'],
    ['OrderWorkflow', 'app/workflows/order_workflow.ts', 'OrderWorkflow', 'order'],
    ['order-workflow', 'app/workflows/order_workflow.ts', 'OrderWorkflow', 'order'],
    [
      'SendInvoices',
      'app/workflows/send_invoices_workflow.ts',
      'SendInvoicesWorkflow',
      'send_invoices',
    ],
    ['billing/charge', 'app/workflows/billing/charge_workflow.ts', 'ChargeWorkflow', 'charge'],
    [
      'billing/eu/ChargeWorkflow.ts',
      'app/workflows/billing/eu/charge_workflow.ts',
      'ChargeWorkflow',
      'charge',
    ],
  ]) {
    test(`${name} becomes ${className} in ${file}`, async ({ assert }) => {
      const { command, read } = await make([name])
      command.assertSucceeded()
      const source = await read(file)
      assert.include(source, `export default class ${className} extends BaseWorkflow {`)
      assert.include(source, `static workflow = { name: '${workflow}', version: '1' }`)
      const input = className.replace(/Workflow$/, 'Input')
      assert.include(source, `export interface ${input} {`)
      assert.include(source, `input: ${input}`)
      assert.notMatch(source, /\{\{|undefined/)
    })
  }

  for (const name of ['workflow', '2fa', '../..']) {
    test(`"${name}" is no name`, async ({ assert }) => {
      const { app, command } = await make([name])
      command.assertExitCode(1)
      assert.include(command.logger.getLogs()[0].message, 'is no name for a workflow class')
      assert.notInclude(await readdir(app.makePath()), 'app')
    })
  }

  test('goes where --dir says', async ({ assert }) => {
    const { read } = await make(['billing/charge', '--dir=modules/flows'])
    const source = await read('modules/flows/billing/charge_workflow.ts')
    assert.include(source, 'class ChargeWorkflow')
  })

  test('a second name is refused', async ({ assert }) => {
    const { app, command } = await make(['order', 'charge'])
    command.assertExitCode(1)
    assert.notInclude(await readdir(app.makePath()), 'app')
  })

  test('--schedule adds a schedule, if it is a cron pattern', async ({ assert }) => {
    const { read } = await make(['report', '--schedule=0 6 * * 1'])
    const source = await read('app/workflows/report_workflow.ts')
    assert.include(source, "static schedule = { cron: '0 6 * * 1' }")
    for (const pattern of ["' }; evil()", "0 6 * * '", 'hello', '0 6 * *', '0 6 * * 1 1 1']) {
      const { command } = await make(['report', `--schedule=${pattern}`])
      command.assertExitCode(1)
      assert.include(command.logger.getLogs()[0].message, 'is no cron pattern')
    }
  })

  test('leaves an existing file alone unless it is forced', async ({ assert }) => {
    const path = 'app/workflows/order_workflow.ts'
    const kept = await make(['order'], { [path]: '// mine' })
    assert.equal(await kept.read(path), '// mine')
    const forced = await make(['order', '--force'], { [path]: '// mine' })
    assert.include(await forced.read(path), 'class OrderWorkflow')
  })

  test('takes the contents from a file', async ({ assert }) => {
    const app = await createApp()
    await writeFile(app.makePath('given.txt'), '// given')
    const { read } = await make(['order', `--contents-from=${app.makePath('given.txt')}`])
    const source = await read('app/workflows/order_workflow.ts')
    assert.equal(source.trim(), '// given')
  })

  test('its class runs', async ({ assert }) => {
    const { WorkflowEngine, InMemoryStateStore, registerWorkflowClass } =
      await import('../../index.ts')
    const { app, read } = await make(['order'])
    const file = 'app/workflows/order_workflow.ts'
    const source = await read(file)
    // What the application would find in its node_modules.
    const local = source.replace(
      '@adonis-agora/durable',
      new URL('../../index.ts', import.meta.url).href
    )
    await writeFile(app.makePath('runnable.ts'), local)
    const module = await import(app.makeURL('runnable.ts').href)
    const engine = new WorkflowEngine({ store: new InMemoryStateStore() })
    await registerWorkflowClass(engine, module.default)
    await engine.start('order', { id: 'o1' }, 'r')
    const result = await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.equal((result.output as { id: string }).id, 'o1')
  })
})
