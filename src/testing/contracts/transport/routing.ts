/*
 * Who gets a task: the handler of its name, in its partition and namespace, once.
 */
import assert from 'node:assert/strict'
import { routingToken } from '../../../wire/names.ts'
import { eventually, quietly, type TransportSession } from '../transport_session.ts'
import { one, shared, type TransportCase } from './case.ts'

export const ROUTING_CASES: TransportCase[] = [
  one("two names never receive each other's tasks", async (session) => {
    session.serve('pair:one', () => 1)
    session.serve('pair.two', () => 2)
    session.serve('pair-one', () => 3)
    for (const [name, output] of [
      ['pair:one', 1],
      ['pair.two', 2],
    ] as const) {
      assert.equal(await session.outputOf(name, null), output)
    }
  }),
  one('a name of spaces, digits and other scripts is served', async (session) => {
    for (const name of ['12345', 'with space', 'größe/☕', 'a:b:c']) {
      session.serve(name, () => name)
      assert.equal(await session.outputOf(name, null), name)
    }
  }),
  one('a partition serves its own tasks and no others', async (session) => {
    session.serve('pooled', () => 'a', 'a')
    session.serve('pooled', () => 'b', 'b')
    session.serve('pooled', () => 'bare', 'default')
    for (const [partition, output] of [
      ['a', 'a'],
      ['b', 'b'],
      [undefined, 'bare'],
    ] as const) {
      const group = routingToken('pooled', partition)
      assert.equal(await session.outputOf('pooled', null, { group }), output)
    }
  }),
  one(
    'a worker of a partition leaves bare tasks and those of other partitions alone',
    async (session) => {
      const seen: unknown[] = []
      session.serve('walled', (input) => void seen.push(input), 'a')
      const groups = [undefined, 'b', 'a'].map((partition) => routingToken('walled', partition))
      const tasks = groups.map((group) => session.task('walled', group, { group }))
      for (const task of tasks) await session.transport.dispatch(task)
      await session.resultOf(tasks[2])
      assert.deepEqual(seen, ['walled@a'])
      for (const task of tasks.slice(0, 2)) {
        assert.ok(session.heard(task).every(({ status }) => status === 'failed'))
      }
    }
  ),
  one('tasks that are dispatched at the same time all come back, each once', async (session) => {
    session.serve('many', (input) => input)
    const tasks = Array.from({ length: 25 }, (_, index) => session.task('many', index))
    await Promise.all(tasks.map((task) => session.transport.dispatch(task)))
    for (const task of tasks) {
      const { output } = await session.resultOf(task)
      assert.equal(output, task.input)
    }
    await quietly()
    assert.ok(tasks.every((task) => session.heard(task).length === 1))
  }),
  one('a name nobody serves is refused for good, or stays silent', async (session) => {
    const unknown = session.task('nobody-serves-this', null)
    await session.transport.dispatch(unknown)
    session.serve('somebody', () => null)
    await session.roundTrip('somebody', null)
    const [answer] = session.heard(unknown)
    if (!answer) return
    assert.equal(answer.status, 'failed')
    assert.equal(answer.error?.retryable, false)
    assert.match(String(answer.error?.message), /^no handler for nobody-serves-this$/)
  }),
  shared('two workers on one name process each task once', async (bench) => {
    const engine = await bench.session()
    const workers = [await bench.session(), await bench.session()]
    const runs: unknown[] = []
    for (const worker of workers) worker.serve('shared', (input) => runs.push(input))
    const tasks = Array.from({ length: 8 }, (_, index) => engine.task('shared', index))
    for (const task of tasks) await engine.transport.dispatch(task)
    for (const task of tasks) await engine.resultOf(task)
    assert.deepEqual(
      [...runs].sort(),
      tasks.map((task) => task.input)
    )
  }),
  shared('namespaces on one backend never meet', async (bench) => {
    const [x, y] = [
      await bench.session({ namespace: 'x' }),
      await bench.session({ namespace: 'y' }),
    ]
    // A transport may keep the pickup beat of a step that ends at once.
    const picked = (session: TransportSession, name: string) => async () => {
      await eventually('a beat', () => session.beats.length > 0)
      return name
    }
    x.serve('which', picked(x, 'x'))
    y.serve('which', picked(y, 'y'))
    assert.equal(await x.outputOf('which', null), 'x')
    assert.equal(await y.outputOf('which', null), 'y')
    assert.equal(x.results.length, 1)
    assert.equal(y.beats.length, 1)
    const seen: unknown[] = []
    y.serve('of-y', (input) => void seen.push(input))
    await x.transport.dispatch(x.task('of-y', 'from x'))
    await y.outputOf('of-y', 'from y', { runId: y.prefix, stepId: `${y.prefix}:0` })
    assert.deepEqual(seen, ['from y'])
  }),
  shared(
    'in a namespace, the pool of its name is served by who serves the bare name',
    async (bench) => {
      const x = await bench.session({ namespace: 'x' })
      x.serve('mine', () => 'x')
      const group = routingToken('mine', 'x')
      assert.equal(await x.outputOf('mine', null, { group }), 'x')
    }
  ),
  shared('in a namespace, a name that ends like a pool is served as it is', async (bench) => {
    const x = await bench.session({ namespace: 'x' })
    for (const name of ['mail@x', 'mail@default', 'mail']) x.serve(name, () => name)
    for (const name of ['mail@x', 'mail@default', 'mail']) {
      assert.equal(await x.outputOf(name, null), name)
    }
  }),
  shared('the default namespace is the unset one, an explicit one stays', async (bench) => {
    const unset = await bench.session()
    const named = await bench.session({ namespace: 'default' })
    const explicit = await bench.session({ namespace: 'x' })
    explicit.transport.useNamespace?.('default')
    explicit.serve('where', () => 'x')
    named.serve('where', () => 'default')
    assert.equal(await unset.outputOf('where', null), 'default')
    assert.equal(await explicit.outputOf('where', null), 'x')
  }),
]
