/*
 * The simulation from the command line. Ends with one plain line: `N passed, N failed`.
 *
 *   npm run test:simulation                           the regression seeds, then SEEDS (default 1000); the
 *                                                     first of them also on SQLite and on Postgres
 *   npm run test:simulation -- --seeds=N --start=K    N seeds from K on
 *   SEED=4711 npm run test:simulation -- --trace      the story of one seed (or --seed=4711)
 *   SEED=4711 npm run test:simulation -- --shrink     a smaller program that fails in the same way
 *   npm run test:simulation -- --off=order            without a rule: failures are expected (rules.ts)
 *   … --store=sqlite|postgres --jobs=N --seconds=N    one store, threads, how long to go on
 *   … --partial                                       seeds that no time was left for are no failure
 */
import { parseArgs } from 'node:util'
import { runJobs } from './jobs.ts'
import { backend } from '../helpers/backends.ts'
import { type SeedOptions, type StoreName, STORES, worldOptions } from './options.ts'
import { isRule, RULES, type RuleName } from './rules.ts'
import { runSeed, type SeedReport } from './seed_run.ts'
import { REGRESSIONS } from './seeds.ts'
import { shrink } from './shrink.ts'
import { simulate } from './world.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: process.env.SEEDS ?? '1000' },
    start: { type: 'string', default: '1' },
    seed: { type: 'string', default: process.env.SEED },
    jobs: { type: 'string' },
    off: { type: 'string', default: '' },
    store: { type: 'string' },
    seconds: { type: 'string', default: '160' },
    partial: { type: 'boolean', default: false },
    kind: { type: 'string' },
    trace: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
  },
})

const off = values.off.split(',').filter((name) => name !== '')
for (const name of off) {
  if (!isRule(name)) throw new Error(`unknown rule "${name}": ${Object.keys(RULES).join(' ')}`)
}
const chosen = { off: off as RuleName[], store: values.store as StoreName | undefined }
/** One seed in so many is also played on these. */
const SHARES = { memory: 1, sqlite: 25, postgres: 50 }
const began = performance.now()

const failed = values.seed === undefined ? await runMany() : await runOne(Number(values.seed))
process.exitCode = failed > 0 ? 1 : 0

async function runOne(seed: number): Promise<number> {
  const { options, dispose } = await worldOptions(chosen)
  try {
    return await tell(seed, options)
  } finally {
    await dispose()
  }
}

async function tell(seed: number, options: SeedOptions): Promise<number> {
  if (values.shrink) {
    console.log(await shrink(seed, options, values.kind))
    return 0
  }
  if (values.trace) {
    const trace: string[] = []
    const { program } = await simulate({ seed, ...options, trace })
    console.log(JSON.stringify(program))
    console.log(trace.join('\n'))
  }
  const report = await runSeed(seed, { ...options, compare: options.compare ?? true })
  for (const failure of report.failures) console.log(failure)
  return summary(1, report.failures.length > 0 ? 1 : 0)
}

async function runMany(): Promise<number> {
  const count = Number(values.seeds)
  if (!Number.isInteger(count) || count < 0) throw new Error(`--seeds=${values.seeds} is no number`)
  if (chosen.store !== undefined || off.length > 0) {
    const { total, bad } = await runOn(chosen.store ?? 'memory', count)
    return summary(total, bad)
  }
  const sums = { total: 0, bad: 0 }
  for (const store of STORES) {
    if (store === 'postgres' && !(await backend('postgres'))) continue
    const { total, bad } = await runOn(store, Math.ceil(count / SHARES[store]))
    sums.total += total
    sums.bad += bad
  }
  return summary(sums.total, sums.bad)
}

async function runOn(store: StoreName, count: number): Promise<{ total: number; bad: number }> {
  const start = performance.now()
  const first = Number(values.start)
  const known = values.start === '1' && off.length === 0 && store === 'memory' ? REGRESSIONS : []
  const guards = new Map(known.map(({ seed, guards: what }) => [seed, what]))
  const seeds = Array.from({ length: count }, (_, i) => first + i)
  const all = [...guards.keys(), ...seeds.filter((seed) => !guards.has(seed))]
  const failures: SeedReport[] = []
  const totals = { events: 0, crashes: 0, tasks: 0, rows: 0 }
  const statuses: Record<string, number> = {}
  const done = await runJobs(
    all,
    {
      ...chosen,
      store,
      jobs: values.jobs === undefined ? undefined : Number(values.jobs),
      budgetMs: 1000 * Number(values.seconds) - (performance.now() - began),
    },
    (report) => {
      for (const key of Object.keys(totals) as (keyof typeof totals)[]) totals[key] += report[key]
      for (const status of report.statuses) statuses[status] = (statuses[status] ?? 0) + 1
      if (report.failures.length === 0) return
      failures.push(report)
      if (off.length === 0) print(report, store, guards.get(report.seed))
    }
  )
  if (off.length > 0) printKinds(failures)
  const seconds = Math.round((performance.now() - start) / 1000)
  console.log(
    `${done} seeds on ${store} in ${seconds} s: ${JSON.stringify({ ...totals, ...statuses })}`
  )
  if (done === all.length && done > 0) return { total: done, bad: failures.length }
  console.log(`stopped after ${done} of ${all.length} seeds: out of time`)
  if (values.partial && done > 0) return { total: done, bad: failures.length }
  console.log('What did not run did not pass: give it more --seconds, or say --partial')
  return { total: done + 1, bad: failures.length + 1 }
}

function print({ seed, failures }: SeedReport, store: StoreName, guards: string | undefined): void {
  if (guards) console.log(`seed ${seed} guards: ${guards}`)
  console.log(`seed ${seed} ${failures[0].slice(0, 300)}`)
  console.log(
    `  SEED=${seed} npm run test:simulation -- --trace${store === 'memory' ? '' : ` --store=${store}`}`
  )
}

function printKinds(reports: SeedReport[]): void {
  const kinds = new Map<string, string[]>()
  for (const { seed, failures } of reports) {
    for (const failure of failures) {
      const [kind] = failure.split(':')
      kinds.set(kind, [...(kinds.get(kind) ?? []), `seed ${seed} ${failure.slice(0, 200)}`])
    }
  }
  for (const [kind, texts] of kinds) console.log(`${kind}: ${texts.length}, such as ${texts[0]}`)
}

function summary(total: number, bad: number): number {
  console.log(`${total - bad} passed, ${bad} failed`)
  return bad
}
