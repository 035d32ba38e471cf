import { getActiveTestOrFail, test } from '@japa/runner'
import { stripVTControlCharacters } from 'node:util'
import DurableWork from '../../commands/durable_work.ts'
import {
  defineConfig,
  type DurableConfig,
  InMemoryStateStore,
  InMemoryTransport,
  stores,
  WorkflowEngine,
} from '../../index.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { PACKAGE, startApp } from '../adonis/app.ts'

const FILES = {
  'app/workflows/order.ts': `
    import { BaseWorkflow } from '${PACKAGE}'
    export default class OrderWorkflow extends BaseWorkflow {
      static workflow = { name: 'order' }
      async run(ctx, input) {
        const price = await ctx.step('price', input)
        await ctx.sleep(20)
        return price
      }
    }`,
  'app/steps/price.ts': `
    import { defineStep } from '${PACKAGE}'
    export const price = defineStep('price', async ({ amount }) => amount * 2)`,
}

interface Worker {
  engine: WorkflowEngine
  command: DurableWork
  /** Ends with the command. */
  done: Promise<void>
}

/** The command, running inside a console application. */
async function work(durable: DurableConfig, args: string[] = []): Promise<Worker> {
  const app = await startApp({
    environment: 'console',
    files: FILES,
    lucid: durable.store === 'lucid',
    durable: defineConfig(durable),
  })
  const ace = await app.container.make('ace')
  ace.ui.switchMode('raw')
  const command = await ace.create(DurableWork, args)
  const engine = await app.container.make(WorkflowEngine)
  const done = command.exec().then(() => app.terminate())
  getActiveTestOrFail().cleanup(async () => {
    command.stop()
    await done
  })
  return { engine, command, done }
}

const until = async (holds: () => unknown) => {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve))
}

function logsOf(command: DurableWork): string[] {
  return command.logger.getLogs().map(({ message }) => stripVTControlCharacters(message))
}

/** A run that stays in a local step until `end`. */
async function busy(engine: WorkflowEngine) {
  const gate = deferred<void>()
  const begun = deferred<void>()
  engine.register('busy', '1', (ctx) =>
    ctx.localStep('work', async () => {
      begun.resolve()
      await gate.promise
      return 'finished'
    })
  )
  await engine.start('busy', null, 'busy')
  await begun.promise
  return { end: () => gate.resolve() }
}

test.group('durable:work', () => {
  test('executes runs, steps and timers until it is stopped', async ({ assert }) => {
    const { engine, command, done } = await work(
      { store: 'lucid', stores: { lucid: stores.lucid() }, drive: false },
      ['--interval=5']
    )
    await engine.start('order', { amount: 21 }, 'r1')
    const result = await engine.waitForRun('r1', { terminal: true, timeoutMs: 8000 })
    assert.equal(result.output, 42)
    command.stop()
    await done
    command.assertSucceeded()
    const logs = logsOf(command)
    assert.match(logs[0], /durable:work started \(interval 5ms\)/)
    assert.match(logs.at(-1)!, /durable:work stopped after \d+ ticks?/)
  })

  test('starts consumption that the console deferred', async ({ assert }) => {
    const transport = new InMemoryTransport()
    let starts = 0
    const start = transport.startConsumers.bind(transport)
    transport.startConsumers = () => {
      starts++
      start()
    }
    const { command, done } = await work({ transport: 't', transports: { t: transport } })
    await until(() => starts > 0)
    command.stop()
    await done
    assert.equal(starts, 1)
  })

  test('hands what it starts itself to itself, whatever drive says', async ({ assert }) => {
    const { engine } = await work({ drive: false }, ['--interval=3600000'])
    engine.register('plain', '1', async () => 1)
    // The only tick of this hour may find the first one; nobody but the process itself the second.
    for (const runId of ['first', 'second']) {
      await engine.start('plain', null, runId)
      const result = await engine.waitForRun(runId, { terminal: true, timeoutMs: 5000 })
      assert.equal(result.status, 'completed')
    }
  })

  test('takes interval and budget from the config unless flags say otherwise', async ({
    assert,
  }) => {
    const config = { drainTimeoutMs: 1, worker: { intervalMs: 77, drainTimeoutMs: 222 } }
    for (const [args, interval, budget] of [
      [[], 77, 222],
      [['--interval=88', '--drain-timeout=333'], 88, 333],
    ] as const) {
      const { engine, command, done } = await work(config, [...args])
      const budgets: unknown[] = []
      const drain = engine.drain.bind(engine)
      engine.drain = (ms) => {
        budgets.push(ms)
        return drain(ms)
      }
      await until(() => logsOf(command).length > 1)
      const [warning, started] = logsOf(command)
      assert.include(warning, 'runs are kept in memory')
      assert.include(started, `interval ${interval}ms`)
      command.stop()
      await done
      assert.deepEqual(budgets, [budget])
    }
  })

  for (const [flag, least] of [
    ['--interval=0', 1],
    ['--interval=Infinity', 1],
    ['--drain-timeout=-1', 0],
  ] as const) {
    test(`refuses ${flag}`, async ({ assert }) => {
      const { command, done } = await work({}, [flag])
      await done
      command.assertExitCode(1)
      const name = flag.split('=')[0]
      assert.include(
        logsOf(command)[0],
        `${name} must be a number of milliseconds of at least ${least}`
      )
    })
  }

  test('refuses an argument', async ({ assert }) => {
    const { command, done } = await work({}, ['now'])
    await done
    command.assertExitCode(1)
    assert.include(logsOf(command)[0], 'durable:work takes no arguments, got "now"')
  })

  test('a signal stops it once the turns in flight are finished', async ({ assert }) => {
    const before = {
      SIGINT: process.listenerCount('SIGINT'),
      SIGTERM: process.listenerCount('SIGTERM'),
    }
    const { engine, command, done } = await work({}, ['--interval=5'])
    await until(() => process.listenerCount('SIGINT') > before.SIGINT)
    const turn = await busy(engine)
    process.emit('SIGINT', 'SIGINT')
    await until(() => engine.isDraining())
    assert.equal((await engine.getRun('busy'))!.status, 'running')
    turn.end()
    await done
    command.assertSucceeded()
    assert.equal((await engine.getRun('busy'))!.output, 'finished')
    assert.equal(process.listenerCount('SIGINT'), before.SIGINT)
    assert.equal(process.listenerCount('SIGTERM'), before.SIGTERM)
  })

  test('a second signal exits at once with code 1', async ({ assert, cleanup }) => {
    const handlers = process.listenerCount('SIGTERM')
    const { engine, done } = await work({}, ['--interval=5'])
    await until(() => process.listenerCount('SIGTERM') > handlers)
    const turn = await busy(engine)
    const codes: unknown[] = []
    const exit = process.exit
    cleanup(() => void (process.exit = exit))
    process.exit = ((code: number) => codes.push(code)) as never
    process.emit('SIGTERM', 'SIGTERM')
    assert.deepEqual(codes, [])
    process.emit('SIGTERM', 'SIGTERM')
    assert.deepEqual(codes, [1])
    process.exit = exit
    turn.end()
    await done
  })

  test('a shutdown of the application stops it, and the engine drains once', async ({ assert }) => {
    const store = new InMemoryStateStore()
    const order: string[] = []
    store.close = async () => void order.push('store closed')
    const { engine, command, done } = await work({ store: 's', stores: { s: store } }, [
      '--interval=5',
    ])
    await until(() => logsOf(command).length > 0)
    const drain = engine.drain.bind(engine)
    engine.drain = async (ms) => {
      order.push('drain begins')
      await drain(ms)
      order.push('drain ends')
    }
    const turn = await busy(engine)
    const terminating = command.app.terminate()
    await until(() => order.length > 0)
    turn.end()
    await Promise.all([terminating, done])
    assert.deepEqual(order, ['drain begins', 'drain ends', 'store closed'])
    assert.equal((await store.getRun('busy'))!.status, 'completed')
    command.assertSucceeded()
  })

  test('what ends the loop with an error is exit code 1', async ({ assert }) => {
    const transport = new InMemoryTransport()
    transport.startConsumers = () => {
      throw new Error('broker is down')
    }
    const { command, done } = await work({ transport: 't', transports: { t: transport } })
    await done
    command.assertExitCode(1)
    assert.include(logsOf(command).join('\n'), 'broker is down')
  })

  test('names its flags as the command line has them', ({ assert }) => {
    const { flags } = DurableWork.serialize()
    assert.sameMembers(
      flags.map(({ flagName }) => flagName),
      ['interval', 'drain-timeout']
    )
  })
})
