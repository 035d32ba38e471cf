/*
 * Children: a parent and its child never miss each other, whoever is faster, crashes or is cancelled.
 */
import { test } from '@japa/runner'
import { deferred } from '../../src/foundation/deferred.ts'
import { isWorkflowControlFlowSignal } from '../../src/foundation/control_flow.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'
import { beforeSettle } from '../helpers/settling.ts'

for (const kind of await storesUnderTest()) {
  test.group(`Children | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('a parent waits for its child and gets its output', async ({ assert }) => {
      const engine = world.engine()
      engine.register('child', '1', async (ctx, input: { n: number }) => {
        const doubled = await ctx.localStep('double', () => input.n * 2)
        return { doubled }
      })
      engine.register('parent', '1', async (ctx) => ctx.child('child', { n: 4 }))
      await engine.start('parent', null, 'p')
      assert.deepEqual(await world.output('p'), { doubled: 8 })
      assert.deepEqual(await world.timeline('p'), [[0, 'signal:child:p.child.0', 'completed']])
      assert.deepEqual(await engine.getRunChildren('p'), ['p.child.0'])
      assert.deepEqual(await world.store.listSignalWaiters(''), [])
    }).tags(['@race-54'])

    for (const begun of [false, true]) {
      test(`a signal to a child that ${begun ? 'has not come to its wait' : 'does not exist yet'} is kept for it`, async ({
        assert,
      }) => {
        const engines = [world.engine(), world.engine()]
        for (const engine of engines) {
          engine.register('child', '1', async (ctx) => {
            await ctx.sleep(1000)
            const heard = [await ctx.waitForSignal('word')]
            return [...heard, await ctx.waitForSignal('word')]
          })
          engine.register('parent', '1', async (ctx) => {
            await ctx.sleep(1000)
            return ctx.child('child', null)
          })
        }
        const [first, next] = engines
        await first.start('parent', null, 'p')
        await world.parked('p')
        world.time.jump(1000)
        if (begun) await first.resumeDueTimers()
        await world.quiet()
        if (begun) assert.equal(await world.status('p.child.1'), 'suspended')
        else assert.isNull(await world.store.getRun('p.child.1'))
        await first.signal('word', 'one')
        await first.signal('word', 'two')
        await world.crash(first)
        for (let pass = 0; pass < 3; pass++) {
          await next.resumeDueTimers()
          await world.quiet()
          world.time.jump(1000)
        }
        assert.deepEqual(await world.output('p'), ['one', 'two'])
      }).tags(['@scenario-14'])
    }

    test('a child that fails, is cancelled or cannot start fails its parent with the cause', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('bad', '1', async () => {
        throw Object.assign(new Error('declined'), { code: 'card', details: { n: 1 } })
      })
      engine.register('stuck', '1', async (ctx) => ctx.waitForSignal('never'))
      const caught = (name: string) =>
        engine.register(`of-${name}`, '1', async (ctx) => {
          try {
            await ctx.child(name, null)
          } catch (error) {
            if (isWorkflowControlFlowSignal(error)) throw error
            const { message, code, details } = error as Error & { code?: string; details?: unknown }
            return { message, code, details }
          }
        })
      for (const name of ['bad', 'stuck', 'unknown']) caught(name)

      await engine.start('of-bad', null, 'b')
      assert.deepEqual(await world.output('b'), {
        message: 'child "b.child.0" failed: declined',
        code: 'card',
        details: { n: 1 },
      })
      await engine.start('of-stuck', null, 's')
      await world.parked('s.child.0')
      await world.parked('s')
      await engine.cancel('s.child.0')
      assert.include(await world.output('s'), { message: 'child "s.child.0" failed: cancelled' })
      await engine.start('of-unknown', null, 'u')
      const failure = (await world.output('u')) as { message: string; code: string }
      assert.include(failure.message, 'child workflow "unknown" failed to start')
      assert.equal(failure.code, 'workflow_not_registered')
      assert.isNull(await world.store.getRun('u.child.0'))
    }).tags(['@race-30', '@control-24'])

    test('a child whose input its schema refuses fails its parent with the cause', async ({
      assert,
    }) => {
      const engine = world.engine()
      const validate = () => ({ issues: [{ message: 'must be a number' }] })
      const inputSchema = { '~standard': { version: 1, vendor: 'test', validate } } as const
      engine.register('picky', '1', async () => 'never', { inputSchema })
      engine.register('parent', '1', async (ctx) =>
        ctx.child('picky', 'x').catch((error: Error & { code?: string }) => {
          return { message: error.message, code: error.code }
        })
      )
      await engine.start('parent', null, 'p')
      const failure = (await world.output('p')) as { message: string; code: string }
      assert.match(failure.message, /must be a number/)
      assert.equal(failure.code, 'invalid_input')
    }).tags(['@race-30', '@control-24'])

    test('a child that ended before its parent asks answers at once', async ({ assert }) => {
      const engine = world.engine()
      engine.register('child', '1', async () => 'early')
      engine.register('parent', '1', async (ctx) => {
        const id = await ctx.startChild('child', null, 'kid')
        await ctx.waitForSignal('go')
        return [id, await ctx.child('child', null, 'kid')]
      })
      await engine.start('parent', null, 'p')
      assert.equal(await world.output('kid'), 'early')
      await world.parked('p')
      await engine.signal('go')
      assert.deepEqual(await world.output('p'), ['kid', 'early'])
    }).tags(['@race-29', '@control-25'])

    test('a start that failed is told to whoever joins later', async ({ assert }) => {
      const engine = world.engine()
      engine.register('parent', '1', async (ctx) => {
        await ctx.startChild('unknown', null, 'kid')
        return ctx.child('unknown', null, 'kid').catch((error: Error) => error.message)
      })
      await engine.start('parent', null, 'p')
      assert.include(await world.output('p'), 'failed to start')
    }).tags(['@race-30'])

    // Without native members there is no such commit, and no index over unfinished cancels.
    if (kind.complete)
      test('a parent that crashed after recording its child finds its end', async ({ assert }) => {
        const first = world.engine({ leaseMs: 1000 })
        const hold = deferred<void>()
        first.register('child', '1', async () => 'never here')
        first.register('parent', '1', async (ctx) => ctx.child('child', null))
        // Dies between the commit that records the child and everything that follows from it.
        world.gate(first).around('commitTurn', async (proceed, [commit]) => {
          const verdict = await proceed()
          if ((commit as { children?: unknown[] }).children) {
            await world.crash(first)
            hold.resolve()
          }
          return verdict
        })
        await first.start('parent', null, 'p')
        await hold.promise
        const second = world.engine({ leaseMs: 1000 })
        second.register('child', '1', async () => 'from the second')
        second.register('parent', '1', async (ctx) => ctx.child('child', null))
        await world.time.advance(1001)
        await second.runPending()
        assert.equal(await world.output('p.child.0'), 'from the second')
        await second.recoverIncomplete()
        assert.equal(await world.output('p'), 'from the second')
      }).tags(['@race-29'])

    test('a notification that was lost is found by the next look', async ({ assert }) => {
      const engine = world.engine({ reconcileMs: 5000 })
      engine.register('child', '1', async (ctx) => ctx.waitForSignal('end'))
      engine.register('parent', '1', async (ctx) => ctx.child('child', null))
      await engine.start('parent', null, 'p')
      await world.parked('p')
      await world.parked('p.child.0')
      const stop = world.gate(engine).around('deliverSignal', async (proceed, [delivery]) => {
        if ((delivery as { token: string }).token.startsWith('child:')) throw new Error('lost')
        return proceed()
      })
      await engine.signal('end', 42)
      assert.equal(await world.output('p.child.0'), 42)
      stop()
      assert.equal(await world.status('p'), 'suspended')
      await world.time.advance(5000)
      await engine.resumeDueTimers()
      assert.equal(await world.output('p'), 42)
    }).tags(['@race-29'])

    test('a parent follows a child that continues as new', async ({ assert }) => {
      const engine = world.engine()
      engine.register('child', '1', async (ctx, n: number) => {
        await ctx.waitForSignal('next')
        if (n < 2) return ctx.continueAsNew(n + 1)
        return `link ${n}`
      })
      engine.register('parent', '1', async (ctx) => ctx.child('child', 0))
      await engine.start('parent', null, 'p')
      for (const link of ['p.child.0', 'p.child.0~1', 'p.child.0~2']) {
        await world.parked(link)
        await world.parked('p')
        await engine.signal('next')
      }
      assert.equal(await world.output('p'), 'link 2')
      assert.deepEqual(await world.store.listSignalWaiters(''), [])
    })

    test('cancelling a parent cancels its children, recursively, and spares those that ended', async ({
      assert,
    }) => {
      const engine = world.engine()
      engine.register('leaf', '1', async (ctx) => ctx.waitForSignal('never'))
      engine.register('quick', '1', async () => 'done')
      engine.register('middle', '1', async (ctx) => ctx.child('leaf', null))
      engine.register('top', '1', async (ctx) => {
        await ctx.child('quick', null, 'q')
        await ctx.startChild('leaf', null, 'forgotten')
        await ctx.child('middle', null, 'm')
      })
      await engine.start('top', null, 't')
      await world.parked('m.child.0')
      await world.parked('forgotten')
      await world.parked('t')
      await engine.cancel('t')
      await world.quiet()
      for (const id of ['t', 'm', 'm.child.0', 'forgotten']) {
        assert.equal(await world.status(id), 'cancelled', id)
        const { cancelRequestedAt } = await world.run(id)
        assert.isUndefined(cancelRequestedAt, id)
      }
      assert.equal(await world.status('q'), 'completed')
    }).tags(['@race-12'])

    for (const compensate of [false, true]) {
      const how = compensate ? 'with undos' : 'plainly'
      test(`runs that wait for each other end when one is cancelled ${how}, each once`, async ({
        assert,
      }) => {
        const engine = world.engine()
        const events = world.eventsOf(engine)
        const ring: Record<string, string> = { a: 'b', b: 'c', c: 'a' }
        engine.register('w', '1', async (ctx) => ctx.child('w', null, ring[ctx.runId]))
        await engine.start('w', null, 'a')
        for (const id of ['a', 'b', 'c']) await world.parked(id)
        await engine.cancel('b', { compensate })
        for (const id of ['a', 'b', 'c']) await world.ended(id)
        await world.quiet()
        const failed = events.filter(({ type }) => type === 'run.failed').map(({ runId }) => runId)
        assert.sameMembers(failed, ['a', 'b', 'c'])
        for (const id of ['a', 'b', 'c']) {
          const { status, cancelRequestedAt } = await world.run(id)
          assert.isUndefined(cancelRequestedAt, id)
          // That the child it waits for was cancelled may reach it before its own cancel does.
          if (id !== 'a') assert.equal(status, 'cancelled', id)
        }
        assert.deepEqual(await world.store.listSignalWaiters(''), [])
      }).tags(['@race-12'])
    }

    test('a child that ends before its parent has parked wakes it', async ({ assert }) => {
      const engine = world.engine({ runDispatcher: { dispatch: () => {} } })
      const faster = world.engine()
      for (const each of [engine, faster]) {
        each.register('child', '1', async () => 'fast')
        each.register('parent', '1', async (ctx) => ctx.child('child', null))
      }
      let ended = false
      beforeSettle(
        world.gate(engine),
        async () => {
          await faster.runOne('p.child.0')
          await world.ended('p.child.0')
          // Its notification has come and has been refused the parent's lease.
          await world.quiet()
          ended = true
        },
        'p'
      )
      await engine.start('parent', null, 'p')
      await engine.runOne('p')
      assert.equal(await world.output('p'), 'fast')
      assert.isTrue(ended)
      assert.deepEqual(await world.store.listSignalWaiters(''), [])
    }).tags(['@race-31', '@control-23'])

    test('a drain that begins during a turn waits for the children which that turn starts', async ({
      assert,
    }) => {
      const engine = world.engine()
      const gate = deferred<void>()
      engine.register('child', '1', async (ctx, n: number) => ctx.localStep('work', () => n))
      engine.register('parent', '1', async (ctx) => {
        await ctx.localStep('work', () => gate.promise)
        await ctx.startChild('child', 1, 'forgotten')
        return [await ctx.child('child', 2), await ctx.all('child', [3, 4])]
      })
      await engine.start('parent', null, 'p')
      await world.reached('p', 'running')
      const drained = engine.drain(10_000)
      gate.resolve()
      await drained
      assert.deepInclude(await world.run('forgotten'), { status: 'completed', output: 1 })
      assert.deepInclude(await world.run('p'), { status: 'completed', output: [2, [3, 4]] })
    }).tags(['@race-31', '@control-20'])

    test('a compensating cancel undoes in the children too', async ({ assert }) => {
      const engine = world.engine()
      const undone: string[] = []
      engine.register('leaf', '1', async (ctx) => {
        await ctx.localStep('book', () => 1, { compensate: () => void undone.push('leaf') })
        await ctx.waitForSignal('never')
      })
      engine.register('top', '1', async (ctx) => {
        await ctx.localStep('pay', () => 1, { compensate: () => void undone.push('top') })
        await ctx.child('leaf', null, 'l')
      })
      await engine.start('top', null, 't')
      await world.parked('l')
      await world.parked('t')
      await engine.cancel('t', { compensate: true })
      await world.reached('t', 'cancelled')
      await world.reached('l', 'cancelled')
      assert.deepEqual(undone.sort(), ['leaf', 'top'])
    })

    // Without native members there is no such commit, and no index over unfinished cancels.
    if (kind.complete)
      test('a cascade that a crash cut short is finished by a timer pass', async ({ assert }) => {
        const first = world.engine()
        const body = (engine: typeof first) => {
          engine.register('leaf', '1', async (ctx) => ctx.waitForSignal('never'))
          engine.register('top', '1', async (ctx) => ctx.child('leaf', null, 'l'))
        }
        body(first)
        await first.start('top', null, 't')
        await world.parked('l')
        await world.parked('t')
        world.gate(first).around('queryCheckpoints', () => new Promise(() => {}))
        await first.cancel('t')
        await world.crash(first)
        assert.equal(await world.status('t'), 'cancelled')
        assert.equal(await world.status('l'), 'suspended')
        const second = world.engine()
        body(second)
        await second.resumeDueTimers()
        await world.reached('l', 'cancelled')
        await world.quiet()
        const { cancelRequestedAt } = await world.run('t')
        assert.isUndefined(cancelRequestedAt)
      }).tags(['@race-12'])

    test('a child that died of its crashes fails its parent', async ({ assert }) => {
      const first = world.engine({ leaseMs: 1000, maxRecoveryAttempts: 0 })
      const parent = async (ctx: WorkflowCtx) =>
        ctx.child('poison', null).catch((error: Error) => error.message)
      const parked = deferred<void>()
      first.register('poison', '1', async () => {
        await parked.promise
        await world.crash(first)
      })
      first.register('parent', '1', parent)
      await first.start('parent', null, 'p')
      await world.reached('p.child.0', 'running')
      await world.parked('p')
      parked.resolve()
      await world.quiet()
      const second = world.engine({ leaseMs: 1000, maxRecoveryAttempts: 0 })
      second.register('poison', '1', async () => 'never')
      second.register('parent', '1', parent)
      await world.time.advance(1001)
      await second.recoverIncomplete()
      await second.resumeDueTimers()
      assert.equal(await world.status('p.child.0'), 'dead')
      assert.include(await world.output('p'), 'crashed 1 times without progress')
    })

    test('a running row that counts no turns is recovered', async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 'done')
      const at = new Date(world.time.clock())
      await world.store.createRun({
        id: 'old',
        workflow: 'w',
        workflowVersion: '1',
        status: 'running',
        input: null,
        createdAt: at,
        updatedAt: at,
      })
      await engine.recoverIncomplete()
      assert.equal(await world.output('old'), 'done')
    })

    test('a child lives in the namespace of its parent run', async ({ assert }) => {
      const engine = world.engine()
      engine.register('child', '1', async () => 1)
      engine.register('parent', '1', async (ctx) => ctx.child('child', null, { priority: 3 }))
      await engine.start('parent', null, 'p', { namespace: 'acme' })
      await world.ended('p')
      const child = await world.run('p.child.0')
      assert.equal(child.namespace, 'acme')
      assert.equal(child.priority, 3)
    }).tags(['@race-56'])
  })
}
