/*
 * A dispatched call that is answered before its dispatch has returned: its row is there by then, so the
 * answer has a place to land.
 */
import { test } from '@japa/runner'
import { defineStep } from '../../src/authoring/step.ts'
import type { Transport } from '../../src/transport/ports.ts'
import type { WorkflowCtx } from '../../src/types/ctx.ts'
import type { RemoteTask, StepResult } from '../../src/wire/messages.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const double = defineStep('double', (n: number) => n * 2)

const BODIES: Record<string, (ctx: WorkflowCtx) => Promise<unknown>> = {
  'a step': (ctx) => ctx.step(double, 1),
  'steps side by side': (ctx) => Promise.all([ctx.step(double, 1), ctx.step(double, 2)]),
  'a fan': (ctx) => ctx.all(double, [1, 2, 3]),
  'a fan in waves': (ctx) => ctx.all(double, [1, 2, 3], { concurrency: 1 }),
  'a step after a step': async (ctx) => ctx.step(double, await ctx.step(double, 1)),
}

for (const kind of await storesUnderTest()) {
  test.group(`Dispatching | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    /** Answers within the dispatch, and notes what is recorded of the call by then. */
    function instant(answer: (task: RemoteTask) => Partial<StepResult>) {
      const found: (string | undefined)[] = []
      let onResult: (result: StepResult) => Promise<void> = async () => {}
      const transport: Transport = {
        onResult: (handler) => void (onResult = handler),
        onHeartbeat: () => {},
        dispatch: async (task) => {
          const { runId, seq, stepId, attempt } = task
          const row = await world.store.getCheckpoint(runId, seq)
          found.push(row === null ? undefined : `${row.status} ${row.attempts}`)
          const result = { runId, seq, stepId, attempt, status: 'completed' as const }
          await onResult({ ...result, ...answer(task) })
        },
      }
      return { transport, found }
    }

    const doubled = ({ input }: RemoteTask) => ({ output: (input as number) * 2 })

    for (const [what, body] of Object.entries(BODIES)) {
      test(`${what}: the row is there before the task is sent`, async ({ assert }) => {
        const { transport, found } = instant(doubled)
        const engine = world.engine({ transport })
        engine.register('w', '1', async (ctx) => [await body(ctx)])
        await engine.start('w', null, 'r')
        const ended = await world.ended('r')
        assert.equal(ended.status, 'completed', JSON.stringify(ended.error))
        assert.isNotEmpty(found)
        assert.deepEqual([...new Set(found)], ['pending 1'])
        for (const row of await world.rows('r')) assert.equal(row.status, 'completed')
      }).tags(['@race-32'])
    }

    for (const mode of ['failFast', 'waitAll'] as const) {
      test(`a member whose dispatch failed although its result was first fails no fan (${mode})`, async ({
        assert,
      }) => {
        const { transport } = instant(doubled)
        const dispatch = transport.dispatch.bind(transport)
        transport.dispatch = async (task) => {
          await dispatch(task)
          if (task.input === 2) throw new Error('the broker did not answer')
        }
        const engine = world.engine({ transport })
        engine.register('w', '1', (ctx) => ctx.all(double, [1, 2, 3], { mode }))
        await engine.start('w', null, 'r')
        const run = await world.ended('r')
        assert.deepEqual([run.status, run.output], ['completed', [2, 4, 6]], run.error?.message)
      }).tags(['@race-32'])
    }

    for (const [what, body] of [
      ['a step', (ctx) => ctx.step(double, 1, { retries: 3 })],
      ['a fan', (ctx) => ctx.all(double, [1], { retries: 3, mode: 'waitAll' })],
    ] as [string, (ctx: WorkflowCtx) => Promise<unknown>][]) {
      test(`${what} whose dispatch failed although its last failure was first is not retried`, async ({
        assert,
      }) => {
        const last = { message: 'no such card', retryable: false }
        const { transport, found } = instant(() => ({ status: 'failed', error: last }))
        const dispatch = transport.dispatch.bind(transport)
        transport.dispatch = async (task) => {
          await dispatch(task)
          throw new Error('the broker did not answer')
        }
        const engine = world.engine({ transport })
        engine.register('w', '1', body)
        await engine.start('w', null, 'r')
        const { status } = await world.ended('r')
        assert.equal(status, 'failed')
        assert.deepEqual(found, ['pending 1'])
        const [row] = await world.rows('r')
        assert.deepInclude(row, { status: 'failed', attempts: 1 })
        assert.deepInclude(row.error, last)
      }).tags(['@race-32'])
    }

    test('a retry: its attempt is recorded before it is sent', async ({ assert }) => {
      const { transport, found } = instant((task) =>
        task.attempt === 1 ? { status: 'failed', error: { message: 'once' } } : doubled(task)
      )
      const engine = world.engine({ transport })
      engine.register('w', '1', async (ctx) => ctx.step(double, 1, { retries: 2 }))
      await engine.start('w', null, 'r')
      assert.equal(await world.output('r'), 2)
      assert.deepEqual(found, ['pending 1', 'pending 2'])
    }).tags(['@race-32'])

    test('an undo: its row is there before it is sent', async ({ assert }) => {
      const { transport, found } = instant(doubled)
      const engine = world.engine({ transport })
      engine.register('w', '1', async (ctx) => {
        await ctx.step('book', 1, { compensate: 'unbook' })
        throw new Error('no')
      })
      await engine.start('w', null, 'r')
      const { status } = await world.ended('r')
      assert.equal(status, 'failed')
      assert.lengthOf(found, 2)
      assert.isTrue(found.every((row) => row !== undefined))
      assert.deepInclude(await world.timeline('r'), [-1, 'compensate:book', 'completed'])
    }).tags(['@race-32'])
  })
}
