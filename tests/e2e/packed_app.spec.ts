import { test } from '@japa/runner'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { PackedApp } from './packed_app.ts'

const BUILT = existsSync(join(import.meta.dirname, '../../build/commands/commands.json'))

const FILES = {
  'app/steps/charge.ts': `
    import { defineStep } from '@adonis-agora/durable'
    export const charge = defineStep('charge', async (input: { cents: number }) => input.cents * 2)`,
  'app/workflows/order_workflow.ts': `
    import { BaseWorkflow, type WorkflowCtx } from '@adonis-agora/durable'
    import { charge } from '../steps/charge.js'
    export default class OrderWorkflow extends BaseWorkflow {
      static workflow = { name: 'order', version: '1' }
      async run(ctx: WorkflowCtx, input: { cents: number }) {
        const charged = await ctx.step(charge, input)
        await ctx.sleep(50)
        return { charged }
      }
    }`,
  'app/workflows/stuck_workflow.ts': `
    import { BaseWorkflow, type WorkflowCtx } from '@adonis-agora/durable'
    export default class StuckWorkflow extends BaseWorkflow {
      static workflow = { name: 'stuck' }
      async run(ctx: WorkflowCtx) {
        await ctx.localStep('forever', async () => {
          console.log('step is stuck')
          await new Promise(() => {})
        })
      }
    }`,
  'commands/start_run.ts': `
    import { args, BaseCommand } from '@adonisjs/core/ace'
    export default class StartRun extends BaseCommand {
      static commandName = 'start:run'
      static options = { startApp: true }
      @args.string()
      declare workflow: string
      async run() {
        const { default: engine } = await import('@adonis-agora/durable/services/main')
        const { status } = await engine.start(this.workflow, { cents: 21 }, this.workflow)
        this.logger.info('run is ' + status)
      }
    }`,
}

if (!BUILT) {
  if (process.env.CI === 'true') throw new Error('tests/e2e needs a build: npm run build')
  console.log('skipped: the packed package, there is no build (npm run build makes one)')
} else {
  test.group('The packed package in an application', (group) => {
    let app: PackedApp
    // Far more than it takes on a machine with nothing else to do.
    group.tap((t) => t.timeout(180_000))
    group.setup(async () => {
      app = await PackedApp.create()
      return () => app.remove()
    })

    test('is configured, scaffolds, migrates and lists its commands', async ({ assert }) => {
      const configured = await app.ace('configure', '@adonis-agora/durable')
      assert.include(configured, 'next steps')
      assert.include(await app.read('adonisrc.ts'), '@adonis-agora/durable/durable_provider')
      assert.include(await app.read('config/durable.ts'), `store: 'lucid'`)
      const { imports } = JSON.parse(await app.read('package.json'))
      assert.equal(imports['#steps/*'], './app/steps/*.js')

      await app.ace('make:workflow', 'billing/invoice')
      assert.include(
        await app.read('app/workflows/billing/invoice_workflow.ts'),
        'class InvoiceWorkflow extends BaseWorkflow'
      )
      assert.lengthOf(await readdir(join(app.root, 'database/migrations')), 3)
      await app.ace('migration:run')
      assert.isTrue(hasTable(app, 'durable_workflow_runs'))

      const list = await app.ace('list')
      for (const command of ['work', 'runs', 'retry', 'export']) {
        assert.include(list, `durable:${command}`)
        assert.include(await app.ace(`durable:${command}`, '--help'), 'Usage')
      }
      assert.include(list, 'make:workflow')
    })

    test('compiles against its published declarations', async ({ assert }) => {
      for (const [path, contents] of Object.entries(FILES)) await app.write(path, contents)
      const tsc = join(app.root, 'node_modules/typescript/bin/tsc')
      assert.equal(await app.node([tsc, '--noEmit', '-p', '.']), '')
    })

    test('generates its barrels, which compile and are what it boots from', async ({ assert }) => {
      assert.include(await app.ace('codegen'), 'created 2 file(s)')
      const barrel = await app.read('.adonisjs/durable/workflows.ts')
      for (const entry of ['order_workflow', 'stuck_workflow', 'billing/invoice_workflow']) {
        assert.include(barrel, `'app/workflows/${entry}.ts': () => import('#workflows/${entry}')`)
      }
      await app.write(
        'app/barrels.ts',
        `import type { Barrel } from '@adonis-agora/durable'
        import { steps } from '../.adonisjs/durable/steps.js'
        import { workflows } from '../.adonisjs/durable/workflows.js'
        export const barrels: Barrel[] = [workflows, steps]`
      )
      const tsc = join(app.root, 'node_modules/typescript/bin/tsc')
      assert.equal(await app.node([tsc, '--noEmit', '-p', '.']), '')
      // What the barrel names is imported; the directories were not read.
      await app.write('.adonisjs/durable/workflows.ts', `${barrel}\nconsole.log('from the barrel')`)
      const started = await app.ace('start:run', 'invoice')
      assert.include(started, 'from the barrel')
      assert.include(started, 'run is ')
    })

    test('a worker process executes what another process started, and stops on SIGTERM', async ({
      assert,
    }) => {
      const config = await app.read('config/durable.ts')
      await app.write(
        'config/durable.ts',
        config.replace(`  store: 'lucid',`, `  drive: false,\n  store: 'lucid',`)
      )
      assert.include(await app.ace('start:run', 'order'), 'run is pending')
      assert.deepEqual(statusOf(app, 'order'), { status: 'pending', output: null })

      const worker = app.startAce('durable:work', '--interval=25')
      await worker.says(/durable:work started \(interval 25ms\)/)
      while (statusOf(app, 'order').status !== 'completed') await breathe()
      assert.deepEqual(JSON.parse(statusOf(app, 'order').output!), { charged: 42 })
      worker.signal('SIGTERM')
      assert.equal(await worker.ended, 0, worker.output())
      assert.match(worker.output(), /durable:work stopped after \d+ ticks/)
      assert.lengthOf(worker.output().match(/durable:work received/g)!, 1)
    })

    test('runs are listed, explained, exported and brought back from other processes', async ({
      assert,
    }) => {
      // The barrel of this application says that it is read.
      const json = async (...args: string[]) => {
        const output = await app.ace(...args)
        return JSON.parse(output.replace('from the barrel\n', ''))
      }
      await app.ace('start:run', 'stuck')
      assert.match(await app.ace('durable:runs'), /order +order@1 +completed/)
      const rows = await json('durable:runs', '--json', '--workflow=order')
      assert.deepEqual(
        rows.map(({ id, status }: { id: string; status: string }) => [id, status]),
        [['order', 'completed']]
      )
      assert.match(await app.ace('durable:runs', 'order'), /Why {3}Completed \d+s ago\./)
      const { run } = await json('durable:export', 'order')
      assert.equal(run.id, 'order')
      assert.include(await app.ace('durable:retry', 'stuck'), 're-enqueued (status: pending)')
      assert.equal(statusOf(app, 'stuck').status, 'pending')
      const unknown = app.startAce('durable:retry', 'nobody')
      assert.equal(await unknown.ended, 1)
      assert.include(unknown.output(), 'there is no run nobody')
    })

    test('a second signal ends a worker that waits for a turn', async ({ assert }) => {
      await app.ace('start:run', 'stuck')
      const worker = app.startAce('durable:work', '--interval=25', '--drain-timeout=60000')
      await worker.says(/step is stuck/)
      worker.signal('SIGINT')
      await worker.says(/received SIGINT: finishing the turns in flight/)
      worker.signal('SIGINT')
      assert.equal(await worker.ended, 1)
      assert.equal(statusOf(app, 'stuck').status, 'running')
    })

    test('the root loads where no optional peer is installed, and says which one is missing', async ({
      assert,
    }) => {
      const bare = await app.withoutPeers()
      const script = `
        import { stores, WorkflowEngine, InMemoryStateStore } from '@adonis-agora/durable'
        await import('@adonis-agora/durable/durable_provider')
        const engine = new WorkflowEngine({ store: new InMemoryStateStore() })
        engine.register('plain', '1', async () => 'ran')
        await engine.start('plain', null, 'r')
        console.log((await engine.waitForRun('r', { terminal: true })).output)
        const container = { hasBinding: () => false }
        await stores.lucid()({ app: { container } }).catch((error) => console.log(error.message))
      `
      const output = await app.node(['--input-type=module', '--eval', script], bare)
      assert.deepEqual(output.trim().split('\n'), [
        'ran',
        'durable: stores.lucid() needs the optional peer "@adonisjs/lucid". Install it with: npm i @adonisjs/lucid',
      ])
    })
  })
}

const breathe = () => new Promise((resolve) => setTimeout(resolve, 25))

function query<T>(app: PackedApp, sql: string, value: string): T {
  const db = new DatabaseSync(join(app.root, 'db.sqlite'), { readOnly: true, timeout: 5000 })
  try {
    return db.prepare(sql).get(value) as T
  } finally {
    db.close()
  }
}

function hasTable(app: PackedApp, name: string): boolean {
  return query(app, 'SELECT name FROM sqlite_master WHERE name = ?', name) !== undefined
}

function statusOf(app: PackedApp, runId: string): { status: string; output: string | null } {
  return query(app, 'SELECT status, output FROM durable_workflow_runs WHERE id = ?', runId)
}
