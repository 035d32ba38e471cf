/*
 * Runs the test suite and ends, whatever happens, with one plain line: `N passed, N failed`.
 *
 *   npm test                              everything this machine can serve but the long suites
 *   npm run test:long                     these (long_suites.ts)
 *   npm test -- tests/replay              one folder; also a file or a glob
 *   npm test -- --files=history --tests="title"    the usual Japa filters
 *   npm test -- --files="tests/api/**"    such a glob is read as a glob, which Japa does not do
 *
 *   TEST_SHARDS=1 npm test                everything in one process; default two side by side
 *
 * The exit code is 1 when a test, a hook, an import or the runner itself failed, or when nothing was found
 * to run: a filter that matches nothing is a mistake, not a success.
 */
import { globSync, statSync, writeSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { assert } from '@japa/assert'
import { expectTypeOf } from '@japa/expect-type'
import { fileSystem } from '@japa/file-system'
import { configure, processCLIArgs, run } from '@japa/runner'
import type { PluginFn } from '@japa/runner/types'
import { secondsOfLong } from './long_suites.ts'
import { runShards, shardOf } from './test_shards.ts'

const ROOT = join(import.meta.dirname, '..')
const EVERYTHING = 'tests/**/*.spec.ts'

/** How long an idle process may live on after the last test before the leak is reported. */
const LEAK_GRACE_MS = 15_000

const LONG = '--long'
const long = process.argv.includes(LONG)
const [paths, flags] = splitArguments(process.argv.slice(2).filter((arg) => arg !== LONG))
const [shard, shards] = (process.env.TEST_SHARD ?? '').split('/').map(Number)
// Not for the suites that tests start themselves.
delete process.env.TEST_SHARD
if (paths.length === 0 && flags.length === 0 && shards === undefined) {
  const wanted = Number(process.env.TEST_SHARDS ?? Math.min(2, availableParallelism()))
  if (wanted > 1) process.exit(await runShards(wanted, long ? [LONG] : []))
}
let counts = () => ({ total: 0, passed: 0, failed: 0 })
let finished = false

process.on('exit', (code) => {
  const { total, passed, failed } = counts()
  const nothing = finished && total === 0
  if (nothing) writeSync(2, `\nNo test matches: ${process.argv.slice(2).join(' ')}\n`)
  const broken = !finished || nothing || failed > 0 || code !== 0
  if (broken) process.exitCode = 1
  writeSync(1, `\n${passed} passed, ${broken ? Math.max(1, failed) : failed} failed\n`)
})

processCLIArgs(flags)
configure({
  cwd: ROOT,
  timeout: 10_000,
  files: () => specFiles(paths).map((file) => pathToFileURL(file)),
  plugins: [
    assert(),
    // A folder of its own for each process: two runs in one checkout must not clean each other's files.
    fileSystem({ autoClean: true, basePath: join(ROOT, 'tmp', `test-${process.pid}`) }),
    expectTypeOf(),
    counting(),
  ],
})

await run()
finished = true
setTimeout(reportLeak, LEAK_GRACE_MS).unref()

/** Bare arguments and globs name spec files, folders or globs; everything else goes to Japa. */
function splitArguments(args: string[]): [string[], string[]] {
  const read = args.map((arg) => arg.match(/^--files=(.*\*\*.*)$/)?.[1] ?? arg)
  return [read.filter((arg) => !arg.startsWith('-')), read.filter((arg) => arg.startsWith('-'))]
}

function specFiles(wanted: string[]): string[] {
  const found = (wanted.length ? wanted : [EVERYTHING]).flatMap((path) => {
    const isFolder = statSync(resolve(ROOT, path), { throwIfNoEntry: false })?.isDirectory()
    const all = globSync(isFolder ? `${path}/**/*.spec.ts` : path, { cwd: ROOT })
    const files = path.includes('*') ? all.filter((file) => file.endsWith('.spec.ts')) : all
    if (wanted.length && files.length === 0) throw new Error(`No spec file matches "${path}"`)
    return files
  })
  const sorted = [...new Set(found)].sort()
  const isWanted = (file: string) => (secondsOfLong(file) !== undefined) === long
  const files = wanted.length || flags.length ? sorted : sorted.filter(isWanted)
  const own = shards === undefined ? files : shardOf(files, shard, shards)
  return own.map((file) => resolve(ROOT, file))
}

/** Keeps the runner within reach of the exit handler. */
function counting(): PluginFn {
  return ({ runner, emitter }) => {
    emitter.on('runner:start', () => {
      counts = () => runner.getSummary().aggregates
    })
  }
}

/** Reached only when something still keeps the event loop alive: a pool, a socket, a timer. */
function reportLeak() {
  console.error(`The tests left handles open: ${process.getActiveResourcesInfo().join(', ')}`)
  process.exit(1)
}
