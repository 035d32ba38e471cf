/*
 * Chaos: six processes with engines, workers and schedules over one database work on runs of every kind while
 * processes are killed, the database (a server of the suite's own) is restarted and crashed, connections are
 * cut, clocks disagree by up to a third of a lease (one by 90 s, for a while), and a deploy rolls over the
 * fleet. Afterwards every run is over and right, every transactional step was done once, no limit was ever
 * exceeded, no lease, wait or buffer is left, and every window of the schedule was started once.
 *
 * Over a broker (`--transport=db`, on Postgres unless --only says more, or `bullmq` or `queue`, over a Redis of
 * the suite's own that is restarted and crashed as well) two of the six processes are workers, where all steps
 * run; in the end no task, claim or result is left there.
 *
 *   npm run test:chaos                            two minutes of it on Postgres and on MariaDB, then the rest
 *   npm run test:chaos -- --short                 one minute of it: for CI
 *   npm run test:chaos -- --seconds=1800 --only=postgres --seed=7
 *   npm run test:chaos -- --short --transport=bullmq
 *
 * The seed decides what is started and what is broken, not how the processes interleave. Ends with one plain
 * line: `N passed, N failed`.
 */
import { parseArgs } from 'node:util'
import { seededRandom } from '../helpers/random.ts'
import { CARRIERS, type CarrierName } from './carriers.ts'
import { play } from './play.ts'
import type { ServerDialect } from './server.ts'

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    seconds: { type: 'string' },
    rate: { type: 'string', default: '6' },
    only: { type: 'string' },
    transport: { type: 'string', default: CARRIERS[0] },
    seed: { type: 'string', default: String(process.pid) },
  },
})

const seconds = Number(values.seconds ?? (values.short ? 60 : 120))
const carrier = values.transport as CarrierName
if (!CARRIERS.includes(carrier)) {
  console.error(`--transport must be one of ${CARRIERS.join(', ')}, not "${carrier}"`)
  process.exit(1)
}
const dialects: ServerDialect[] = ['postgres', 'mysql']
const only = values.only ?? (carrier === CARRIERS[0] ? undefined : 'postgres')

let passed = 0
let failed = 0
console.log(`seed ${values.seed}`)
for (const dialect of dialects) {
  if (only !== undefined && only !== dialect) continue
  const problems = await play({
    dialect,
    carrier,
    seconds,
    runsPerSecond: Number(values.rate),
    random: seededRandom(Number(values.seed)),
    say: (text) => console.log(`${dialect}: ${text}`),
  }).catch((error: Error) => [String(error.stack)])
  if (problems.length === 0) passed += 1
  else failed += 1
  console.log(`${problems.length === 0 ? 'ok     ' : 'FAILED '} ${dialect}`)
  for (const problem of problems) console.log(`         ${problem}`)
}
if (passed + failed === 0) failed = 1
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
