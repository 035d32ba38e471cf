/*
 * Two generations of processes over one set of data: the old one drains while the new one starts, recovers
 * and brings a new version of the code.
 */
import { test } from '@japa/runner'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { storesUnderTest, until, useWorld } from '../helpers/engines.ts'

const LEASE_MS = 30_000
const RUNS = 8

for (const kind of await storesUnderTest()) {
  test.group(`Rolling deploy | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    test('every run ends once under the version it began with, whoever finishes it, and no lease is left', async ({
      assert,
    }) => {
      const ends: string[] = []
      const bodies = new Map<string, number>()
      const stuck = deferred<void>()
      let stuckIn: WorkflowEngine | undefined
      const generation = (versions: string[]) => {
        const engine = world.engine({ transport: 'held', leaseMs: LEASE_MS })
        engine.subscribe(({ type, runId }) => {
          if (/^run\.(completed|failed|dead|cancelled)$/.test(type)) ends.push(`${type} ${runId}`)
        })
        for (const version of versions) {
          engine.register('w', version, async (ctx, n: number) => {
            const a = await ctx.localStep('a', async () => {
              if (ctx.runId !== 'stuck' || (stuckIn !== undefined && stuckIn !== engine)) return n
              stuckIn = engine
              stuck.resolve()
              return new Promise<never>(() => {})
            })
            const b = await ctx.step<number>('remote', a)
            return ctx.localStep('b', () => {
              bodies.set(ctx.runId, (bodies.get(ctx.runId) ?? 0) + 1)
              return `${version}: ${a + b}`
            })
          })
        }
        return engine
      }

      const old = generation(['1'])
      const ids = Array.from({ length: RUNS }, (_, n) => `old${n}`)
      for (const [n, id] of ids.entries()) await old.start('w', n, id)
      await old.start('w', 100, 'stuck')
      await stuck.promise
      const young = generation(['1', '2'])
      const youngIds = Array.from({ length: RUNS }, (_, n) => `young${n}`)
      for (const [n, id] of youngIds.entries()) await young.start('w', n, id)

      const draining = old.drain(1000)
      for (const id of [...ids, ...youngIds]) {
        const task = await until(() => world.held.sent.find(({ runId }) => runId === id), id)
        // Results reach either generation, also those of a version that the old one does not know.
        const via = world.port(Number(id.at(-1)) % 2 ? old : young)
        await Promise.all([
          world.held.complete(task, 1000, via),
          young.recoverIncomplete(),
          young.runPending(),
        ])
      }
      await world.quiet()
      await world.time.advance(1000)
      await draining
      await world.crash(old)
      assert.deepEqual(await young.recoverIncomplete(), [])
      world.time.jump(LEASE_MS + 1)
      await young.recoverIncomplete()
      await young.resumeDueTimers()
      await young.runPending()
      const task = await until(
        () => world.held.sent.find(({ runId }) => runId === 'stuck'),
        'stuck'
      )
      await world.held.complete(task, 1000, world.port(young))

      for (const [n, id] of ids.entries()) assert.equal(await world.output(id), `1: ${n + 1000}`)
      for (const [n, id] of youngIds.entries()) {
        assert.equal(await world.output(id), `2: ${n + 1000}`)
      }
      assert.equal(await world.output('stuck'), '1: 1100')
      await world.quiet()
      const all = [...ids, ...youngIds, 'stuck']
      assert.deepEqual(ends.sort(), all.map((id) => `run.completed ${id}`).sort())
      for (const id of all) {
        assert.notProperty(await world.run(id), 'lockedBy', id)
        assert.equal(bodies.get(id), 1, id)
        assert.equal(world.held.times(`${id}:1`), 1, id)
      }
    }).tags(['@scenario-19'])
  })
}
