/*
 * What a wait for a run means for the process it is in.
 */
import { test } from '@japa/runner'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** What Node exits with when a top-level await can never end. */
const UNSETTLED = 13

test.group('waitForRun | the process', () => {
  test('it keeps none alive: a script without anything else ends', ({ assert }) => {
    const script = fileURLToPath(new URL('../fixtures/waits_for_nobody.ts', import.meta.url))
    const { status, stderr } = spawnSync(process.execPath, ['--import=@poppinss/ts-exec', script], {
      encoding: 'utf8',
      timeout: 60_000,
    })
    assert.equal(status, UNSETTLED, stderr)
  }).timeout(60_000)
})
