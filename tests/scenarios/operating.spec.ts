/*
 * Operating on runs: cancelling many, sending steps again, retrying with another input, deleting.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import { InvalidArgumentError } from '../../src/errors.ts'
import type { RunFilter } from '../../src/types/query.ts'
import { storesUnderTest, useWorld, type World } from '../helpers/engines.ts'

const ship = defineStep('ship', async (n: number) => n)

/** Runs that wait, and the engine that parked them. */
async function parked(world: World, ids: string[], tags: string[] = []) {
  const engine = world.engine()
  engine.register('waits', '1', async (ctx) => ctx.waitForSignal(`go ${ctx.runId}`))
  for (const id of ids) await engine.start('waits', null, id, { tags })
  for (const id of ids) await world.parked(id)
  return engine
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `r${i}`)

for (const kind of await storesUnderTest()) {
  test.group(`Cancelling many | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('live runs that match are cancelled and answered; others are left alone', async ({
      assert,
    }) => {
      const engine = await parked(world, ['a', 'b'], ['x'])
      engine.register('done', '1', async () => 'done')
      await engine.start('done', null, 'c', { tags: ['x'] })
      await world.ended('c')
      await engine.start('waits', null, 'd', { tags: ['y'] })
      await world.parked('d')
      const results = await engine.cancelWhere({ tag: 'x' }, { by: 'me' })
      assert.sameDeepMembers(
        results,
        ['a', 'b'].map((runId) => ({
          runId,
          status: 'cancelled' as const,
          error: { message: 'cancelled' },
        }))
      )
      assert.equal(await world.status('c'), 'completed')
      assert.equal(await world.status('d'), 'suspended')
      assert.deepEqual(await engine.cancelWhere({ status: 'completed' }), [])
      assert.deepEqual(await engine.cancelWhere({ statuses: ['failed'] }), [])
    })

    test('with undos each run undoes first', async ({ assert }) => {
      const engine = world.engine()
      const undone: string[] = []
      engine.register('w', '1', async (ctx) => {
        const undo = () => void undone.push(ctx.runId)
        await ctx.localStep('a', () => 1, { compensate: undo })
        await ctx.waitForSignal('never')
      })
      for (const id of ['1', '2']) await engine.start('w', null, id)
      for (const id of ['1', '2']) await world.parked(id)
      const results = await engine.cancelWhere({ workflow: 'w' }, { compensate: true })
      assert.lengthOf(results, 2)
      for (const id of ['1', '2']) assert.include(await world.ended(id), { status: 'cancelled' })
      assert.sameMembers(undone, ['1', '2'])
    })

    test('a filter whose every value got lost is refused, and {} is every run', async ({
      assert,
    }) => {
      const engine = await parked(world, ['a'])
      const lost = [{ tag: undefined }, { namespace: '' }, { attributes: [] }] as RunFilter[]
      for (const filter of lost) {
        for (const verb of ['cancelWhere', 'purgeRuns'] as const) {
          const error = await engine[verb](filter).catch((thrown: unknown) => thrown)
          assert.instanceOf(error, InvalidArgumentError, `${verb} ${JSON.stringify(filter)}`)
        }
      }
      assert.equal(await world.status('a'), 'suspended')
      assert.lengthOf(await engine.cancelWhere({}), 1)
    })

    test('a filter that selects by less than it says is refused', async ({ assert }) => {
      const engine = await parked(world, ['a'])
      const wrong: [unknown, RegExp][] = [
        [{ tags: ['x'] }, /no predicate "tags"; there are workflow, /],
        [{ workflow: 'w', workflowId: 'w' }, /no predicate "workflowId"/],
        [{ page: 1, size: 10 }, /no predicate "page"/],
        [{ attributes: { key: 'a', op: 'eq', value: 1 } }, /no list for attributes/],
        [{ statuses: 'suspended' }, /no list for statuses/],
        [{ namespace: null }, /null for namespace/],
        [{ createdBefore: '2020-01-01' }, /needs epoch ms for createdBefore, got "2020-01-01"/],
        [{ updatedAfter: Number.NaN }, /needs epoch ms for updatedAfter, got NaN/],
        [{ tag: 5 }, /needs text for tag, got 5/],
        [{ attributes: [{ key: 'a', op: '=', value: 1 }] }, /no operator for attribute "a"/],
        [{ attributes: [null] }, /needs a key for attributes/],
        ...['w', 7, null, undefined, [], new Map([['workflow', 'x']]), Promise.resolve({})].map(
          (what): [unknown, RegExp] => [what, /must be an object\. Pass \{\} if every run is meant/]
        ),
      ]
      for (const [filter, message] of wrong) {
        for (const verb of ['cancelWhere', 'purgeRuns'] as const) {
          const act = () => engine[verb](filter as RunFilter)
          await assert.rejects(act, message)
          await assert.rejects(act, InvalidArgumentError)
        }
      }
      assert.equal(await world.status('a'), 'suspended')
      assert.lengthOf(await engine.cancelWhere({ origin: null, tag: undefined }), 1)
    })
  })

  test.group(`Sending steps again | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('every step without a result goes out again under its own id', async ({ assert }) => {
      const engine = world.engine({ transport: 'held', traceparent: () => 'trace' })
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => 1)
        return ctx.all(ship, [1, 2, 3])
      })
      await engine.start('w', null, 'r', { priority: 4 })
      await world.held.complete(await world.held.task('ship', 2), 2)
      await world.parked('r')
      world.time.jump(5000)
      const result = await engine.redispatchPending('r')
      assert.deepEqual(result, { runId: 'r', status: 'suspended', redispatched: 2 })
      const again = world.held.sent.slice(3)
      assert.deepEqual(
        again.map(({ stepId, attempt, input, traceparent, priority }) => ({
          stepId,
          attempt,
          input,
          traceparent,
          priority,
        })),
        [
          { stepId: 'r:1', attempt: 2, input: 1, traceparent: 'trace', priority: 4 },
          { stepId: 'r:3', attempt: 2, input: 3, traceparent: 'trace', priority: 4 },
        ]
      )
      const rows = await world.rows('r')
      assert.deepEqual(
        rows.map((row) => row.attempts),
        [1, 2, 1, 2]
      )
      assert.deepEqual(rows[1].enqueuedAt, new Date(world.time.now))
      for (const task of again) await world.held.complete(task, task.input)
      assert.deepEqual(await world.output('r'), [1, 2, 3])
    })

    test('the re-dispatch deadline counts from the new send', async ({ assert }) => {
      const engine = world.engine({ transport: 'held', remoteRedispatchMs: 60_000 })
      engine.register('w', '1', async (ctx) => ctx.step(ship, 1))
      await engine.start('w', null, 'r')
      await world.held.task('ship')
      await world.parked('r')
      world.time.jump(50_000)
      await engine.redispatchPending('r')
      const [row] = await world.rows('r')
      assert.equal(row.wakeAt, world.time.now + 60_000)
    })

    test('an unknown run is null; one that is over, or has nothing out, is answered untouched', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.step(ship, 1))
      engine.register('waits', '1', async (ctx) => ctx.waitForSignal('go'))
      await engine.start('w', null, 'r')
      await engine.start('waits', null, 'waits')
      await world.held.task('ship')
      await world.parked('r')
      await world.parked('waits')
      await engine.cancel('r')
      assert.deepInclude(await engine.redispatchPending('r'), {
        status: 'cancelled',
        redispatched: 0,
      })
      assert.deepInclude(await engine.redispatchPending('waits'), { redispatched: 0 })
      assert.isNull(await engine.redispatchPending('nobody'))
      assert.lengthOf(world.held.sent, 1)
    })

    test('a transport that refuses is told to the operator, and the step stays out', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) => ctx.step(ship, 1))
      await engine.start('w', null, 'r')
      await world.held.task('ship')
      await world.parked('r')
      world.held.refuse = new Error('broker is down')
      const error = await engine.redispatchPending('r').catch((thrown) => thrown)
      assert.match(error.message, /broker is down/)
      world.held.refuse = undefined
      assert.deepInclude(await engine.redispatchPending('r'), { redispatched: 1 })
      await world.held.complete(world.held.sent.at(-1)!, 7)
      assert.equal(await world.output('r'), 7)
    })
  })

  test.group(`Retrying with another input | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a new run in the newest version takes namespace, priority and own tags along', async ({
      assert,
    }) => {
      const engine = world.engine()
      const body = async (_: unknown, n: number) => {
        if (n < 0) throw new Error('negative')
        return n
      }
      engine.register('w', '1', body, { tags: ['static'] })
      const tags = ['own', 'singleton:k', 'concurrency:c']
      await engine.start('w', -1, 'r', { namespace: 'blue', priority: 3, tags })
      const before = await world.ended('r')
      engine.register('w', '2', body, { tags: ['static'] })
      const retry = await engine.retryWithInput('r', 5)
      assert.match(retry!.runId, /^r~retry~[\w-]{36}$/)
      const run = await world.ended(retry!.runId)
      assert.deepInclude(run, {
        workflow: 'w',
        workflowVersion: '2',
        status: 'completed',
        input: 5,
        output: 5,
        namespace: 'blue',
        priority: 3,
      })
      assert.sameMembers(run.tags!, ['static', 'own'])
      assert.deepEqual(await world.run('r'), before)
      assert.isNull(await engine.retryWithInput('nobody', 1))
    }).tags(['@control-58'])

    test('an id of choice is started once; the original is no choice', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (_, n: number) => n)
      await engine.start('w', 1, 'r')
      await world.ended('r')
      assert.deepEqual(await engine.retryWithInput('r', 2, 'mine'), { runId: 'mine' })
      assert.deepEqual(await engine.retryWithInput('r', 3, 'mine'), { runId: 'mine' })
      assert.equal(await world.output('mine'), 2)
      const error = await engine.retryWithInput('r', 2, 'r').catch((thrown) => thrown)
      assert.instanceOf(error, InvalidArgumentError)
    })
  })

  test.group(`Deleting | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    /** What of these runs is left anywhere. */
    async function left(ids: string[]): Promise<string[]> {
      const found: string[] = []
      for (const id of ids) {
        if (await world.store.getRun(id)) found.push(id)
        const rows = await world.rows(id)
        if (rows.length > 0) found.push(`rows of ${id}`)
      }
      const waiters = await world.store.listSignalWaiters('')
      return [...found, ...waiters.filter(({ runId }) => ids.includes(runId)).map((w) => w.token)]
    }

    test('a run goes with everything below it, chains included', async ({ assert }) => {
      const engine = world.engine()
      engine.register('leaf', '1', async (_, n: number) => n)
      engine.register('chain', '1', async (ctx, n: number) => {
        if (n > 0) await ctx.continueAsNew(n - 1)
        return ctx.child('leaf', n)
      })
      engine.register('w', '1', async (ctx) => {
        await ctx.child('chain', 2)
        await ctx.all('leaf', [1, 2])
        await ctx.startChild('leaf', 3, 'own')
      })
      await engine.start('w', null, 'r')
      await engine.start('leaf', 1, 'other')
      for (const id of ['r', 'own', 'other']) await world.ended(id)
      await world.quiet()
      const tree = ['r', 'r.child.0', 'r.child.0~1', 'r.child.0~2', 'r.child.0~2.child.0']
      tree.push('r.all.1.0', 'r.all.1.1', 'own')
      for (const id of tree) await world.ended(id)
      assert.equal(await engine.deleteRun('r'), tree.length)
      assert.deepEqual(await left(tree), [])
      assert.equal(await world.status('other'), 'completed')
      assert.equal(await engine.deleteRun('r'), 0)
      assert.equal(await engine.deleteRun('nobody'), 0)
    })

    test('runs that await each other are deleted once', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async (ctx, other: string) => ctx.child('w', ctx.runId, other))
      await engine.start('w', 'b', 'a')
      await world.parked('a')
      await world.parked('b')
      assert.equal(await engine.deleteRun('a'), 2)
      assert.deepEqual(await left(['a', 'b']), [])
    })

    test('a live run is gone for good: no turn, no signal and no result brings it back', async ({
      assert,
    }) => {
      const engine = world.engine({ transport: 'held' })
      engine.register('w', '1', async (ctx) =>
        Promise.all([ctx.step(ship, 1), ctx.waitForSignal('go'), ctx.sleep('1s')])
      )
      await engine.start('w', null, 'r')
      const task = await world.held.task('ship')
      await world.parked('r')
      assert.equal(await engine.deleteRun('r'), 1)
      await world.held.complete(task, 1)
      assert.isNull(await engine.signal('go'))
      world.time.jump(60_000)
      await engine.resumeDueTimers()
      await world.quiet()
      assert.deepEqual(await left(['r']), [])
    })

    test('signals that are buffered on its tokens go, others stay', async ({ assert }) => {
      const engine = await parked(world, ['a', 'a:b'])
      await engine.start('waits', null, 'a.child.7')
      await world.parked('a.child.7')
      const gone = [
        'child:a.child.3',
        'wh:a:1',
        'bp:a:2',
        'entityreply:a:3',
        'task:a:x',
        'update:a:x:y',
        'child:a',
      ]
      const kept = [
        'child:a.child.7',
        'wh:a:b:1',
        'update:a:b:x',
        'task:ab:x',
        'wh:a:x',
        'mine',
        'child:ab',
      ]
      for (const token of [...gone, ...kept]) await world.store.bufferSignal(token, token)
      await engine.deleteRun('a')
      const found: string[] = []
      for (const token of [...gone, ...kept]) {
        if (await world.store.takeBufferedSignal(token)) found.push(token)
      }
      // Only a name tells a store of required members what is buffered.
      const all = kind.complete ? kept : [...gone.slice(0, -1), ...kept]
      assert.sameMembers(found, all)
    })

    test('a purge takes what is over, in batches, and skips what lives', async ({ assert }) => {
      const engine = await parked(world, ['live'])
      engine.register('done', '1', async () => 1)
      for (const id of numbered(7)) await engine.start('done', null, id)
      for (const id of numbered(7)) await world.ended(id)
      await world.quiet()
      world.gate(engine).calls.clear()
      assert.equal(await engine.purgeRuns({ workflow: 'done' }, { batchSize: 3 }), 7)
      assert.equal(world.gate(engine).calls.get('listRuns'), 3)
      assert.deepEqual(await left(numbered(7)), [])
      assert.equal(await engine.purgeRuns({}), 0)
      assert.equal(await world.status('live'), 'suspended')
      for (const batchSize of [0, -1, 1.5, Number.NaN]) {
        const error = await engine.purgeRuns({}, { batchSize }).catch((thrown) => thrown)
        assert.instanceOf(error, InvalidArgumentError)
      }
    })

    test('a purge of live runs cancels them, their children too', async ({ assert }) => {
      const engine = await parked(world, [])
      engine.register('parent', '1', async (ctx) => {
        await ctx.startChild('waits', null, 'free')
        await ctx.child('waits', null, 'kid')
      })
      await engine.start('parent', null, 'p')
      for (const id of ['p', 'kid', 'free']) await world.parked(id)
      assert.equal(await engine.purgeRuns({ workflow: 'parent' }, { cancelLive: true }), 1)
      await world.quiet()
      for (const id of ['kid', 'free']) assert.equal(await world.status(id), 'cancelled')
      assert.deepEqual(await left(['p']), [])
      assert.equal(await engine.purgeRuns({ workflow: 'waits' }), 2)
    })

    test('a purge with children takes subtrees outside the scope, unless one lives', async ({
      assert,
    }) => {
      const engine = await parked(world, [])
      engine.register('leaf', '1', async () => 1)
      engine.register('parent', '1', async (ctx, live: boolean) => {
        await ctx.child('leaf', null)
        if (live) await ctx.startChild('waits', null)
      })
      await engine.start('parent', false, 'a')
      await engine.start('parent', true, 'b')
      for (const id of ['a', 'b']) await world.ended(id)
      await world.parked('b.child.1')
      const scope = { workflow: 'parent' }
      assert.equal(await engine.purgeRuns(scope, { children: true }), 2)
      assert.deepEqual(await left(['a', 'a.child.0']), [])
      assert.equal(await world.status('b.child.0'), 'completed')
      assert.equal(await engine.purgeRuns(scope, { children: true, cancelLive: true }), 3)
      assert.deepEqual(await left(['b', 'b.child.0', 'b.child.1']), [])
    })

    test('a namespace is purged by itself, and an empty one is refused', async ({ assert }) => {
      const engine = world.engine()
      engine.register('done', '1', async () => 1)
      await engine.start('done', null, 'a', { namespace: 'blue' })
      await engine.start('done', null, 'b')
      for (const id of ['a', 'b']) await world.ended(id)
      assert.equal(await engine.purgeNamespace('blue'), 1)
      assert.equal(await world.status('b'), 'completed')
      const error = await engine.purgeNamespace('').catch((thrown) => thrown)
      assert.instanceOf(error, InvalidArgumentError)
    })
  })
}
