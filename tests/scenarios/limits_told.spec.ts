/*
 * Limits as messages tell them: what they say is allowed is allowed.
 */
import { test } from '@japa/runner'
import { resolveSchedules } from '../../index.ts'
import { storesUnderTest, useWorld } from '../helpers/engines.ts'

const [memory] = await storesUnderTest()

test.group('Limits as they are told', (group) => {
  const world = useWorld(group, memory)

  for (const [what, options, most] of [
    ['singleton', { singleton: { key: String } }, 245],
    ['concurrency', { concurrency: { key: String, limit: 1 } }, 243],
  ] as const) {
    test(`a ${what} key: ${most} bytes`, async ({ assert }) => {
      const engine = world.engine()
      engine.register('w', '1', async () => 1, options)
      await engine.start('w', 'k'.repeat(most), 'fits')
      const { status } = await world.ended('fits')
      assert.equal(status, 'completed')
      await assert.rejects(
        () => engine.start('w', 'k'.repeat(most + 1), 'long'),
        `start: the ${what} key of workflow "w" is ${most + 1} bytes long, at most ${most} are allowed`
      )
      assert.isNull(await engine.getRun('long'))
    })
  }

  test('what is no schedule is named by its place', async ({ assert }) => {
    const schedule = { key: 'a', workflow: 'w', everyMs: 1000 }
    await assert.rejects(
      () => resolveSchedules([schedule, null as never]),
      'resolveSchedules: schedules[1] must be an object { key, workflow, cron }, got null'
    )
    await assert.rejects(
      () => resolveSchedules(schedule as never),
      'resolveSchedules: the schedules must be a list'
    )
    const engine = world.engine()
    const report = await engine.fireSchedules({ schedules: [null as never], now: world.time.now })
    assert.include(String(report.failures[0].error), 'the key must be a string, got undefined')
  })
})
