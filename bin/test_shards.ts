/*
 * The whole suite in several processes side by side: most tests wait for a database. Prints what they print,
 * line by line, and ends with the sum of their summary lines.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { join } from 'node:path'

const SUMMARY = /^(\d+) passed, (\d+) failed$/

/** These share one build folder, so they run in one process. */
const TOGETHER = /^tests\/(package|e2e|demo)\//

/** The files of one shard, of `tests/…` paths in order. */
export function shardOf(files: string[], shard: number, of: number): string[] {
  let apart = 0
  return files.filter((file) => (TOGETHER.test(file) ? 0 : apart++ % of) === shard)
}

/** Answers the exit code. */
export async function runShards(of: number): Promise<number> {
  const shards = await Promise.all(Array.from({ length: of }, (_, shard) => runShard(shard, of)))
  const passed = shards.reduce((sum, each) => sum + each.passed, 0)
  const failed = shards.reduce((sum, each) => sum + each.failed, 0)
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`)
  return failed > 0 || passed === 0 ? 1 : 0
}

async function runShard(shard: number, of: number): Promise<{ passed: number; failed: number }> {
  const child = spawn(
    process.execPath,
    [...process.execArgv, join(import.meta.dirname, 'test.ts')],
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
