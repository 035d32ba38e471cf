import { test } from '@japa/runner'
import { readdir, readFile } from 'node:fs/promises'
import DurableExport from '../../commands/durable_export.ts'
import { WorkflowEngine } from '../../index.ts'
import { assertReplayable } from '../../src/testing/main.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { rig, type Rig, storedRun } from './runs_rig.ts'

async function charge(ctx: WorkflowCtx, input: unknown): Promise<string> {
  const { amount, card } = input as { amount: number; card: string }
  const at = await ctx.now()
  const paid = await ctx.localStep('charge', () => ({ card, amount, ok: true }))
  const fresh = await ctx.patched('receipts')
  await ctx.child('receipt', paid, 'receipt-1')
  return `${card} ${at > 0} ${String(fresh)}`
}

const receipt = async (_ctx: WorkflowCtx, input: unknown): Promise<unknown> => input

/** A run with a child, as an engine leaves it. */
async function charged({ app }: Rig): Promise<void> {
  const engine = await app.container.make(WorkflowEngine)
  engine.register('charge', '1', charge)
  engine.register('receipt', '1', receipt)
  await engine.start('charge', { amount: 5, card: '4111' }, 'c-1', { tags: ['vip'] })
  await engine.waitForRun('c-1', { terminal: true, timeoutMs: 5000 })
}

test.group('durable:export', () => {
  test('a run as JSON that replays against its workflow', async ({ assert }) => {
    const world = await rig()
    await charged(world)
    const { stdout, exitCode } = await world.run(DurableExport, ['c-1'])
    assert.notEqual(exitCode, 1)
    const text = stdout.join('\n')
    const document = JSON.parse(text)
    assert.deepEqual(Object.keys(document), [
      'format',
      'version',
      'exportedAt',
      'package',
      'run',
      'checkpoints',
    ])
    assert.deepEqual(document.run.tags, ['vip'])
    assert.notProperty(document.run, 'lockedBy')
    await assertReplayable((engine) => engine.register('charge', '1', charge), text)
  })

  test('--redact leaves the shape and no payload', async ({ assert }) => {
    const world = await rig()
    await charged(world)
    const { stdout } = await world.run(DurableExport, ['c-1', '--redact', '--children'])
    const text = stdout.join('\n')
    assert.notInclude(text, '4111')
    const { run, checkpoints, children } = JSON.parse(text)
    assert.deepEqual(run.input, { amount: 0, card: '…' })
    const outputs = checkpoints.map(({ name, output }: { name: string; output: unknown }) => [
      name,
      output,
    ])
    assert.deepEqual(outputs, [
      ['now', 0],
      ['charge', { card: '…', amount: 0, ok: false }],
      ['patch:receipts', true],
      ['signal:child:receipt-1', { ok: true, value: { card: '…', amount: 0, ok: false } }],
    ])
    assert.equal(children[0].run.id, 'receipt-1')
  })

  test('several runs go into a folder, a file each, or a line each to stdout', async ({
    assert,
  }) => {
    const { app, store, run } = await rig()
    for (const id of ['a', 'b/../c']) await store.createRun(storedRun(id))
    await store.createRun(storedRun('d', { status: 'failed' }))
    const { stderr, stdout } = await run(DurableExport, ['--status=completed', '--out=histories'])
    assert.isEmpty(stdout)
    assert.lengthOf(stderr, 2)
    const files = await readdir(app.makePath('histories'))
    assert.sameMembers(files, ['a.json', 'b%2F..%2Fc.json'])
    const text = await readFile(app.makePath('histories/a.json'), 'utf8')
    assert.match(text, /^\{\n {2}"format": "durable-run-history",\n[^]*\}\n$/)
    const lines = await run(DurableExport, ['a', 'd'])
    assert.deepEqual(
      lines.stdout.map((line) => JSON.parse(line).run.id),
      ['a', 'd']
    )
  })

  test('makes the folder that --out names a file in, and short names for long ids', async ({
    assert,
  }) => {
    const { app, store, run } = await rig()
    const long = ['ü'.repeat(100), `${'ü'.repeat(99)}x`]
    for (const id of ['a', ...long]) await store.createRun(storedRun(id))
    const one = await run(DurableExport, ['a', '--out=tests/histories/a.json'])
    assert.isNotOk(one.exitCode)
    assert.deepEqual(await readdir(app.makePath('tests/histories')), ['a.json'])
    const several = await run(DurableExport, [...long, '--out=histories'])
    assert.isNotOk(several.exitCode)
    const files = await readdir(app.makePath('histories'))
    assert.lengthOf(files, 2)
    for (const file of files) assert.isAtMost(file.length, 255)
    const under = await run(DurableExport, ['a', '--out=tests/histories/a.json/b.json'])
    assert.equal(under.exitCode, 1)
    assert.include(under.stderr.join(), '--out=tests/histories/a.json/b.json: E')
  })

  test('one that is missing is told after the others were written', async ({ assert }) => {
    const { app, store, run } = await rig()
    await store.createRun(storedRun('a'))
    const { exitCode, stderr } = await run(DurableExport, ['nobody', 'a', '--out=found'])
    assert.equal(exitCode, 1)
    assert.include(stderr.join('\n'), 'there is no run nobody')
    assert.include(stderr.at(-1)!, '1 of 2 runs are missing')
    assert.deepEqual(await readdir(app.makePath('found')), ['a.json'])
  })

  test('refuses what it cannot do, nothing written', async ({ assert }) => {
    const { run } = await rig()
    for (const [args, message] of [
      [[], 'name runs by their ids, or select them with --workflow or --status'],
      [['a', '--workflow=x'], 'give ids, or --workflow and --status, not both'],
      [['--status=odd'], '--status=odd is unknown'],
    ] as const) {
      const { exitCode, stderr } = await run(DurableExport, [...args])
      assert.equal(exitCode, 1)
      assert.include(stderr.join(), message)
    }
  })
})
