import { test } from '@japa/runner'
import { writeFile } from 'node:fs/promises'
import DurableRetry from '../../commands/durable_retry.ts'
import { WorkflowEngine } from '../../index.ts'
import { rig, storedRun } from './runs_rig.ts'

test.group('durable:retry', () => {
  test('brings a failed run back and leaves it to a worker', async ({ assert }) => {
    const { app, store, run } = await rig()
    const engine = await app.container.make(WorkflowEngine)
    let bodies = 0
    engine.register('checkout', '4', async () => void bodies++)
    await store.createRun(storedRun('r', { status: 'failed', error: { message: 'no' } }))
    const { exitCode, stdout } = await run(DurableRetry, ['r'])
    assert.notEqual(exitCode, 1)
    assert.deepEqual(stdout, ['Run r re-enqueued (status: pending).'])
    for (let round = 0; round < 20; round++) await new Promise((done) => setImmediate(done))
    assert.equal((await store.getRun('r'))!.status, 'pending')
    assert.equal(bodies, 0)
  })

  test('says why a run cannot be brought back, with exit code 1', async ({ assert }) => {
    const { store, run } = await rig()
    await store.createRun(storedRun('done', {}))
    await store.createRun(storedRun('gone', { status: 'cancelled' }))
    const held = { lockedBy: 'other', lockedUntil: Date.now() + 60_000 }
    await store.createRun(storedRun('busy', { status: 'running', ...held }))
    for (const [id, message] of [
      ['nobody', 'there is no run nobody'],
      ['done', 'run done is completed: it stays as it is'],
      ['gone', 'run gone is cancelled: it stays as it is'],
      ['busy', 'run busy is running: a process executes it'],
    ]) {
      const { exitCode, stderr, stdout } = await run(DurableRetry, [id, '--json'])
      assert.equal(exitCode, 1)
      assert.include(stderr.join(), message)
      assert.isEmpty(stdout)
    }
  })

  test('--input starts a new run and leaves the old one', async ({ assert }) => {
    const { app, store, run } = await rig()
    const engine = await app.container.make(WorkflowEngine)
    engine.register('checkout', '4', async () => {}, {
      validateInput: (input) => {
        if ((input as { amount: number }).amount < 0) throw new Error('amount is negative')
      },
    })
    await store.createRun(storedRun('r', { status: 'failed' }))
    const first = await run(DurableRetry, ['r', '--input={"amount":1}'])
    const id = /^Run (r~retry~[\w-]+) started \(status: pending\)\.$/.exec(first.stdout[0])?.[1]
    assert.deepEqual((await store.getRun(id!))!.input, { amount: 1 })
    assert.equal((await store.getRun('r'))!.status, 'failed')

    await writeFile(app.makePath('corrected.json'), '{"amount":2}')
    const file = `--input=@${app.makePath('corrected.json')}`
    const second = await run(DurableRetry, ['r', file, '--json'])
    const { runId } = JSON.parse(second.stdout.join('')) as { runId: string }
    assert.deepEqual((await store.getRun(runId))!.input, { amount: 2 })

    for (const [args, message] of [
      [['r', '--input={'], '--input: '],
      [['r', '--input=@nowhere.json'], 'nowhere.json'],
      [['r', '--input={"amount":-1}'], 'amount is negative'],
      [['r', 'other', '--input=1'], '"other" is one argument too many'],
      [['nobody', '--input=1'], 'there is no run nobody'],
    ] as const) {
      const { exitCode, stderr } = await run(DurableRetry, [...args])
      assert.equal(exitCode, 1, stderr.join())
      assert.include(stderr.join(), message)
    }
    assert.equal(await engine.countRuns({}), 3)
  })
})
