/*
 * Failure routes and dead letters: whoever is to handle the end of a run is started once, however often
 * that is repeated and whatever dies in between.
 */
import { test } from '@japa/runner'
import { FatalError } from '../../src/errors.ts'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { WorkflowRun } from '../../src/types/run.ts'
import type { OnErrorRoute } from '../../src/types/workflow.ts'
import { storesUnderTest, T0, useWorld } from '../helpers/engines.ts'

const MINUTE = 60_000
const echo = async (_ctx: WorkflowCtx, input: unknown) => input
const wait = async (ctx: WorkflowCtx) => ctx.waitForSignal(`never:${ctx.runId}`)
const failsWith = (code?: string) => async () => {
  throw new FatalError('declined', code, { card: 4 })
}
const ROUTES: OnErrorRoute[] = [
  { workflow: 'any' },
  { code: 'card', workflow: 'card' },
  { code: 'card', workflow: 'second' },
  { code: 'schema_validation', workflow: 'schema' },
]

function registerHandlers(engine: WorkflowEngine): void {
  for (const name of ['any', 'card', 'second', 'schema']) engine.register(name, '1', echo)
}

for (const kind of await storesUnderTest()) {
  test.group(`Failure routes | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    const lost = (id: string, fields: Partial<WorkflowRun>): WorkflowRun => ({
      id,
      workflow: 'w',
      workflowVersion: '1',
      status: 'running',
      namespace: 'default',
      input: { n: 1 },
      createdAt: new Date(T0),
      updatedAt: new Date(T0),
      ...fields,
    })

    test('the route is the one of the code, of the schema, then the one without a code', async ({
      assert,
    }) => {
      const engine = world.engine()
      registerHandlers(engine)
      const expected: Record<string, string | undefined> = {
        card: 'card',
        other: 'any',
        invalid_input: 'schema',
        invalid_output: 'schema',
        schema_validation: 'schema',
        non_determinism: undefined,
      }
      for (const [code, handler] of Object.entries(expected)) {
        engine.register(`w-${code}`, '1', failsWith(code), { onError: ROUTES })
        await engine.start(`w-${code}`, { of: code }, code)
        await world.reached(code, 'failed')
        await world.quiet()
        const run = await world.store.getRun(`onerror:${code}`)
        assert.equal(run?.workflow, handler, code)
      }
      assert.deepEqual(await world.output('onerror:card'), {
        runId: 'card',
        workflow: 'w-card',
        input: { of: 'card' },
        error: await world.errorOf('card'),
      })
      engine.register('unrouted', '1', failsWith('x'), { onError: [ROUTES[1]] })
      await engine.start('unrouted', null, 'u')
      await world.reached('u', 'failed')
      await world.quiet()
      assert.isNull(await world.store.getRun('onerror:u'))
    })

    test('it comes after the undos, in the namespace of the run, and once however often it fails', async ({
      assert,
    }) => {
      const engine = world.engine()
      const said: string[] = []
      engine.register('any', '1', async () => void said.push('handled'))
      const body = async (ctx: WorkflowCtx) => {
        await ctx.localStep('book', () => 1, { compensate: () => void said.push('undone') })
        throw new FatalError('no')
      }
      engine.register('w', '1', body, { onError: [{ workflow: 'any' }] })
      await engine.start('w', null, 'r', { namespace: 'acme' })
      const { namespace } = await world.ended('onerror:r')
      assert.equal(namespace, 'acme')
      assert.deepEqual(said, ['undone', 'handled'])
      await engine.requeue('r')
      await world.reached('r', 'failed')
      await world.quiet()
      assert.equal(said.filter((what) => what === 'handled').length, 1)
    })

    test('a handler that fails or cannot be started is reported, and handled by nobody', async ({
      assert,
    }) => {
      const engine = world.engine()
      const onError = [{ code: 'gone', workflow: 'gone' }, { workflow: 'bad' }]
      engine.register('bad', '1', failsWith('bad'), { onError })
      engine.register('lost', '1', failsWith('gone'), { onError })
      engine.register('w', '1', failsWith('x'), { onError })
      await engine.start('w', null, 'r')
      await world.reached('onerror:r', 'failed')
      await engine.start('lost', null, 'l')
      await world.reached('l', 'failed')
      await world.quiet()
      assert.isNull(await world.store.getRun('onerror:onerror:r'))
      assert.isNull(await world.store.getRun('onerror:l'))
      const codes = world.reports.map((error) => (error as { code?: string }).code)
      assert.deepEqual(codes, ['workflow_not_registered'])
      assert.deepEqual(await engine.unservedOnErrorRoutes(), [
        { workflow: 'bad', route: { code: 'gone', workflow: 'gone' } },
        { workflow: 'lost', route: { code: 'gone', workflow: 'gone' } },
        { workflow: 'w', route: { code: 'gone', workflow: 'gone' } },
      ])
    })

    test('a run that was cancelled, timed out or is dead has no route', async ({ assert }) => {
      const engine = world.engine({ maxRecoveryAttempts: 0 })
      registerHandlers(engine)
      engine.register('w', '1', wait, { onError: ROUTES, executionTimeout: MINUTE })
      for (const id of ['plain', 'undoing', 'late']) {
        await engine.start('w', null, id)
        await world.parked(id)
      }
      await engine.cancel('plain')
      await engine.cancel('undoing', { compensate: true })
      await world.ended('undoing')
      await world.store.createRun(lost('dead', {}))
      await engine.recoverIncomplete()
      await world.time.advance(MINUTE)
      await engine.sweepTimeouts()
      await world.quiet()
      assert.equal(await world.status('late'), 'cancelled')
      assert.equal(await world.status('dead'), 'dead')
      const handlers = await world.store.listRuns({ idPrefix: 'onerror:' })
      assert.deepEqual(handlers, [])
    })

    test('a dead run goes to its method, to what its workflow names, or to what the engine names', async ({
      assert,
    }) => {
      const engine = world.engine({ maxRecoveryAttempts: 0, deadLetterWorkflow: 'fleet' })
      for (const version of ['1', '2']) engine.register('own.dlq', version, echo)
      engine.register('own', '1', wait, { deadLetterWorkflow: 'named' })
      engine.register('naming', '1', wait, { deadLetterWorkflow: 'named' })
      for (const name of ['named', 'fleet']) engine.register(name, '1', echo)
      const told: WorkflowRun[] = []
      const stop = engine.onDead((run) => void told.push(run))
      engine.onDead(() => {
        throw new Error('a listener that throws')
      })
      const ids = { own: 'own', older: 'own', naming: 'naming', silent: 'unknown' }
      for (const [id, workflow] of Object.entries(ids)) {
        const workflowVersion = id === 'older' ? '0' : '1'
        await world.store.createRun(lost(id, { workflow, workflowVersion, namespace: 'acme' }))
      }
      await world.store.createRun(lost('dlq:x', { workflow: 'own' }))
      await world.store.createRun(lost('onerror:x', { workflow: 'own' }))
      await engine.recoverIncomplete()
      await world.quiet()
      const found = await Promise.all(Object.keys(ids).map((id) => world.store.getRun(`dlq:${id}`)))
      assert.deepEqual(
        found.map((run) => [run?.workflow, run?.workflowVersion, run?.namespace]),
        [
          ['own.dlq', '1', 'acme'],
          ['own.dlq', '2', 'acme'],
          ['named', '1', 'acme'],
          ['fleet', '1', 'acme'],
        ]
      )
      assert.deepEqual(await world.output('dlq:naming'), {
        deadRunId: 'naming',
        workflow: 'naming',
        input: { n: 1 },
        error: await world.errorOf('naming'),
      })
      assert.isNull(await world.store.getRun('dlq:dlq:x'))
      assert.isNull(await world.store.getRun('dlq:onerror:x'))
      assert.sameMembers(
        told.map(({ id, status }) => `${id} ${status}`),
        [...Object.keys(ids), 'dlq:x', 'onerror:x'].map((id) => `${id} dead`)
      )
      assert.deepEqual(told[0].error, await world.errorOf(told[0].id))
      stop()
      await world.store.createRun(lost('later', { workflow: 'own' }))
      await engine.recoverIncomplete()
      assert.lengthOf(told, 6)
    })

    test('handlers that died with their process are started by the next recovery, once', async ({
      assert,
    }) => {
      const options = { maxRecoveryAttempts: 0, deadLetterWorkflow: 'any' }
      const body = (engine: WorkflowEngine) => {
        registerHandlers(engine)
        engine.register('w', '1', failsWith('card'), { onError: ROUTES })
      }
      const first = world.engine(options)
      body(first)
      world.gate(first).around('createRun', async (proceed, [run]) => {
        if (/^(onerror|dlq):/.test((run as WorkflowRun).id)) return new Promise(() => {})
        return proceed()
      })
      await first.start('w', null, 'failed')
      await world.reached('failed', 'failed')
      await world.store.createRun(lost('dead', {}))
      void first.recoverIncomplete()
      await world.reached('dead', 'dead')
      await world.crash(first)
      assert.isNull(await world.store.getRun('dlq:dead'))
      assert.isNull(await world.store.getRun('onerror:failed'))
      // A process that names no handlers starts none.
      const other = world.engine()
      registerHandlers(other)
      await other.recoverIncomplete()
      await world.quiet()
      assert.isNull(await world.store.getRun('dlq:dead'))

      const second = world.engine(options)
      body(second)
      await second.recoverIncomplete()
      for (const id of ['dlq:dead', 'onerror:failed']) await world.reached(id, 'completed')
      const { updatedAt } = await world.run('dlq:dead')
      await world.time.advance(MINUTE)
      await second.recoverIncomplete()
      await world.quiet()
      assert.deepEqual(await world.run('dlq:dead').then((run) => run.updatedAt), updatedAt)
    })

    test('a drain waits for the handler of a failure to be there', async ({ assert }) => {
      const engine = world.engine()
      registerHandlers(engine)
      engine.register('w', '1', failsWith('card'), { onError: ROUTES })
      world.gate(engine).around('createRun', async (proceed, [run]) => {
        if ((run as WorkflowRun).id === 'onerror:r') {
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
        return proceed()
      })
      await engine.start('w', null, 'r')
      await world.reached('r', 'failed')
      await engine.drain()
      assert.isNotNull(await world.store.getRun('onerror:r'))
    })
  })
}
