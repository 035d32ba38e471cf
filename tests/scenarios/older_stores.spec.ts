/*
 * A custom store written against the published shape: it has no optional member, and drops every column
 * that it does not know.
 */
import { test } from '@japa/runner'
import { OPTIONAL_MEMBERS } from '../../src/store/ports/members.ts'
import type { StateStore } from '../../src/store/state_store.ts'
import { InMemoryStateStore } from '../../src/store/memory/memory_store.ts'
import { type StoreKind, useWorld, withoutMembers } from '../helpers/engines.ts'

const UNKNOWN_OF_RUNS = [
  'waitSeqs',
  'cancelRequestedAt',
  'cancelRequestedBy',
  'deadlineAt',
  'turns',
  'claimedAt',
  'awaited',
]
const UNKNOWN_OF_ROWS = ['order', 'maxAttempts', 'timeoutMs']

function without(value: unknown, columns: string[]): object {
  return Object.fromEntries(
    Object.entries(value as object).filter(([column]) => !columns.includes(column))
  )
}

function olderStore(): StateStore {
  const store = withoutMembers(new InMemoryStateStore(), OPTIONAL_MEMBERS)
  return new Proxy(store, {
    get(target, name) {
      if (name === 'createRun') {
        return (run: object) => target.createRun(without(run, UNKNOWN_OF_RUNS) as never)
      }
      if (name === 'updateRun') {
        return (id: string, patch: object) => target.updateRun(id, without(patch, UNKNOWN_OF_RUNS))
      }
      if (name === 'updateRunIf') {
        return (id: string, statuses: [], patch: object) =>
          target.updateRunIf(id, statuses, without(patch, UNKNOWN_OF_RUNS))
      }
      if (name === 'saveCheckpoint') {
        return (row: object) => target.saveCheckpoint(without(row, UNKNOWN_OF_ROWS) as never)
      }
      return Reflect.get(target, name) as unknown
    },
  })
}

const kind: StoreKind = {
  name: 'published columns',
  complete: false,
  open: async () => ({ empty: async () => olderStore(), close: async () => {} }),
}

test.group('Older stores', (group) => {
  const world = useWorld(group, kind)

  test('a run of many turns does everything once', async ({ assert }) => {
    const engine = world.engine()
    const ran: string[] = []
    engine.handle('remote', (input) => {
      ran.push('remote')
      return input
    })
    engine.register('w', '1', async (ctx) => {
      const a = await ctx.localStep('a', () => (ran.push('a'), 'a'))
      const at = await ctx.now()
      const b = await ctx.step('remote', 'b')
      await ctx.sleep(1000)
      const c = await ctx.waitForSignal('go')
      const d = await ctx.localStep('d', () => (ran.push('d'), 'd'))
      return [a, at, b, c, d]
    })
    const begun = world.time.now
    await engine.start('w', null, 'r')
    await world.parked('r')
    world.time.jump(1000)
    await engine.resumeDueTimers()
    await world.parked('r')
    await engine.signal('go', 'c')
    assert.deepEqual(await world.output('r'), ['a', begun, 'b', 'c', 'd'])
    assert.deepEqual(ran, ['a', 'remote', 'd'])
  })

  test('a crash is recovered, and counted', async ({ assert }) => {
    const [doomed, living] = [world.engine(), world.engine({ maxRecoveryAttempts: 1 })]
    const ran: string[] = []
    for (const engine of [doomed, living]) {
      engine.register('w', '1', async (ctx) => {
        await ctx.localStep('a', () => void ran.push('a'))
        await ctx.localStep('b', () => (engine === doomed ? new Promise(() => {}) : 1))
        return 'done'
      })
    }
    await doomed.start('w', null, 'r')
    await world.reached('r', 'running')
    await world.quiet()
    await world.crash(doomed)
    world.time.jump(30_001)
    await living.recoverIncomplete()
    assert.equal(await world.output('r'), 'done')
    assert.deepEqual(ran, ['a'])
  })

  test('undos run when the body fails, in a later turn too', async ({ assert }) => {
    const engine = world.engine()
    const undone: string[] = []
    engine.register('w', '1', async (ctx) => {
      await ctx.localStep('a', () => 1, { compensate: () => void undone.push('a') })
      await ctx.waitForSignal('go')
      await ctx.localStep('b', () => 1, { compensate: () => void undone.push('b') })
      throw new Error('no')
    })
    await engine.start('w', null, 'r')
    await world.parked('r')
    await engine.signal('go')
    await world.ended('r')
    assert.deepEqual(undone, ['b', 'a'])
  })

  test('a chain continues, and a requeue brings back', async ({ assert }) => {
    const engine = world.engine()
    let broken = true
    engine.register('w', '1', async (ctx, n: number) => {
      if (n < 2) return ctx.continueAsNew(n + 1)
      return ctx.localStep('a', () => {
        if (broken) throw new Error('broken')
        return 'fixed'
      })
    })
    await engine.start('w', 0, 'r')
    await world.ended('r~2')
    broken = false
    await engine.requeue('r~2')
    assert.deepInclude(await engine.waitForRun('r', { terminal: true }), { output: 'fixed' })
  })
})
