/*
 * Runs whose executor died.
 */
import { deferred } from '../../src/foundation/deferred.ts'
import type { World } from '../helpers/engines.ts'

export const LEASE_MS = 30_000

/** Starts a run on an engine that dies in its first local step. */
export async function crashIn(world: World, runId: string, options = {}) {
  const engine = world.engine(options)
  const begun = deferred<void>()
  engine.register('w', '1', async (ctx) => {
    await ctx.localStep('work', () => {
      begun.resolve()
      return new Promise(() => {})
    })
  })
  void engine.start('w', null, runId)
  await begun.promise
  await world.crash(engine)
}
