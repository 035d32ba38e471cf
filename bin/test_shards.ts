/*
 * The whole suite in several processes side by side: most tests wait for a database. Prints what they print,
 * line by line, and ends with the sum of their summary lines.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { secondsOf } from './long_suites.ts'

const SUMMARY = /^(\d+) passed, (\d+) failed$/

/** These share one build folder, so they run in one process. */
const TOGETHER = /^tests\/(package|e2e|demo)\//

/** The files of one shard, of `tests/…` paths in order: each goes to the shard with the least to do. */
export function shardOf(files: string[], shard: number, of: number): string[] {
  const loads = Array.from({ length: of }, () => 0)
  const own: string[] = []
  const apart = files.filter((file) => !TOGETHER.test(file))
  for (const file of [...files.filter((each) => TOGETHER.test(each)), ...apart]) {
    const at = TOGETHER.test(file) ? 0 : loads.indexOf(Math.min(...loads))
    loads[at] += secondsOf(file)
    if (at === shard) own.push(file)
  }
  return own.sort()
}

/** Answers the exit code. */
export async function runShards(of: number, flags: string[]): Promise<number> {
  const shards = await Promise.all(
    Array.from({ length: of }, (_, shard) => runShard(shard, of, flags))
  )
  const passed = shards.reduce((sum, each) => sum + each.passed, 0)
  const failed = shards.reduce((sum, each) => sum + each.failed, 0)
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`)
  return failed > 0 || passed === 0 ? 1 : 0
}

async function runShard(
  shard: number,
  of: number,
  flags: string[]
): Promise<{ passed: number; failed: number }> {
  const child = spawn(
    process.execPath,
    [...process.execArgv, join(import.meta.dirname, 'test.ts'), ...flags],
    {
      env: { ...process.env, TEST_SHARD: `${shard}/${of}` },
      stdio: ['ignore', 'pipe', 'inherit'],
    }
  )
  const exited = once(child, 'exit')
  let summary: RegExpExecArray | null = null
  for await (const line of createInterface({ input: child.stdout })) {
    const found = SUMMARY.exec(line)
    if (found) summary = found
    else process.stdout.write(`${line}\n`)
  }
  const [code] = await exited
  const passed = Number(summary?.[1] ?? 0)
  const failed = Number(summary?.[2] ?? 1)
  return { passed, failed: code === 0 ? failed : Math.max(1, failed) }
}
