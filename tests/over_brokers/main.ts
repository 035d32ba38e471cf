/*
 * Suites of engines over a broker: each engine of a test that asks for no transport of its own has one over
 * tables on Postgres, then over Redis. Everything else is as in `npm test`, in memory. What cannot run
 * there is told with its reason (suites.ts), before anything runs.
 *
 *   npm run test:brokers                              over both
 *   npm run test:brokers -- --only=bullmq             over one
 *   DURABLE_TEST_TRANSPORT=db npm test -- tests/x     any other suite, at your own risk
 *
 * Ends with one plain line: `N passed, N failed`.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { NOT_OVER_BROKERS, SUITES } from './suites.ts'

const ROOT = join(import.meta.dirname, '../..')
const BROKERS = ['db', 'bullmq']
const SUMMARY = /^(\d+) passed, (\d+) failed$/gm

const { values } = parseArgs({ options: { only: { type: 'string' } } })
const chosen = BROKERS.filter((name) => values.only === undefined || values.only === name)
if (chosen.length === 0) {
  console.error(`--only must be ${BROKERS.join(' or ')}, not "${values.only}"`)
  process.exit(1)
}

for (const [title, why] of Object.entries(NOT_OVER_BROKERS)) {
  console.log(`not over a broker: "${title}": ${why}`)
}
let passed = 0
let failed = 0
for (const broker of chosen) {
  console.log(`\n── over ${broker}`)
  const counts = await runOver(broker)
  passed += counts.passed
  failed += counts.failed
}
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0

function runOver(broker: string): Promise<{ passed: number; failed: number }> {
  const flags = ['--import=@poppinss/ts-exec', '--enable-source-maps', 'bin/test.ts']
  const child = spawn(process.execPath, [...flags, ...SUITES], {
    cwd: ROOT,
    env: { ...process.env, DURABLE_TEST_TRANSPORT: broker },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
    process.stdout.write(chunk)
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      const last = [...output.matchAll(SUMMARY)].at(-1)
      const [good, bad] = last ? [Number(last[1]), Number(last[2])] : [0, 1]
      resolve({ passed: good, failed: code === 0 ? bad : Math.max(1, bad) })
    })
  })
}
