/*
 * Kills real processes in the middle of their work and looks at what is left of it.
 *
 *   npm run test:crash                    every boundary by itself, twenty random moments a database
 *   npm run test:crash -- --short         many boundaries in one kill, fewer random moments: for CI
 *   npm run test:crash -- --only=sqlite --seed=7
 *
 * A boundary that was never hit has failed. Ends with one plain line: `N passed, N failed`.
 */
import { parseArgs } from 'node:util'
import { backend } from '../helpers/backends.ts'
import { seededRandom } from '../helpers/random.ts'
import { boundaryTrials } from './boundary_trials.ts'
import { CrashData, type CrashDialect } from './data.ts'
import { Life } from './life.ts'
import { randomTrials } from './random_trials.ts'
import { Scoreboard } from './scoreboard.ts'
import { takeoverTrials } from './takeover_trials.ts'

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    only: { type: 'string' },
    seed: { type: 'string', default: String(process.pid) },
  },
})

const SIZES = values.short
  ? { together: 44, parallel: 1, exactTries: 2, kills: 10, rounds: 1 }
  : { together: 1, parallel: 2, exactTries: 3, kills: 20, rounds: 5 }

const scoreboard = new Scoreboard()
const random = seededRandom(Number(values.seed))
scoreboard.say(`seed ${values.seed}`)
const wanted = await dialects()
await Promise.all(
  wanted.map((dialect) =>
    crash(dialect).catch((error: Error) => {
      scoreboard.fail(`${dialect}: the crash tests run to their end`, [error.message], error.stack)
    })
  )
)
scoreboard.end()
process.exitCode = scoreboard.failed > 0 || scoreboard.passed === 0 ? 1 : 0

async function dialects(): Promise<CrashDialect[]> {
  const there: CrashDialect[] = ['sqlite']
  if (await backend('postgres')) there.push('postgres')
  return there.filter((dialect) => values.only === undefined || values.only === dialect)
}

async function crash(dialect: CrashDialect): Promise<void> {
  const { together, parallel, exactTries, kills, rounds } = SIZES
  const data = await CrashData.create(dialect)
  const heir = values.short ? new Life({ name: 'heir', log: data.log.path }) : undefined
  try {
    await boundaryTrials({ data, scoreboard, together, parallel, exactTries, heir })
    await randomTrials({ data, scoreboard, kills, random })
    if (dialect === 'postgres') await takeoverTrials({ data, scoreboard, rounds, random })
  } finally {
    await heir?.kill()
    await data.remove()
  }
}
