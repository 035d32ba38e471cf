import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { test } from '@japa/runner'

const ROOT = join(import.meta.dirname, '../..')

/** Runs bin/test.ts on one fixture and returns its exit code and its very last line. */
async function runSuite(path: string, ...flags: string[]) {
  const args = ['--import=@poppinss/ts-exec', 'bin/test.ts', path, ...flags]
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.resume()
  const code = await new Promise((resolve) => child.once('close', resolve))
  return { code, last: output.trimEnd().split('\n').at(-1) }
}

test.group('the runner ends with a plain line and an honest exit code', (group) => {
  group.tap((t) => t.timeout(30_000))

  const outcomes: [what: string, file: string, code: number, last: string][] = [
    ['everything passes', 'passing', 0, '1 passed, 0 failed'],
    ['a test fails', 'failing', 1, '1 passed, 1 failed'],
    ['a hook fails', 'broken_hook', 1, '1 passed, 1 failed'],
    ['a file cannot be imported', 'broken_import', 1, '0 passed, 1 failed'],
    ['a rejection is left unhandled', 'stray_rejection', 1, '1 passed, 1 failed'],
    ['a test ends the process', 'exits', 1, '0 passed, 1 failed'],
    ['a file does not exist', 'absent', 1, '0 passed, 1 failed'],
  ]
  for (const [what, file, code, last] of outcomes) {
    test(`when ${what}`, async ({ assert }) => {
      assert.deepEqual(await runSuite(`tests/runner/fixtures/${file}.ts`), { code, last })
    })
  }

  test('when a filter chooses one test', async ({ assert }) => {
    const outcome = await runSuite('tests/runner/fixtures/failing.ts', '--tests=holds')
    assert.deepEqual(outcome, { code: 0, last: '1 passed, 0 failed' })
  })
})
