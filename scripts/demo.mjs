/*
 * npm run demo: the shop of examples/shop, with a worker that is killed in the middle of a step. Exits
 * with 0 only if every order, its history and the ledger are right afterwards. `npm run demo --
 * --transport=db` or `bullmq` dispatches the steps over that.
 *
 * This file only finds the right Node; the story is in demo/story.ts.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const NEEDED = 24

if (Number(process.versions.node.split('.')[0]) >= NEEDED) {
  await import('@poppinss/ts-exec')
  await import('./demo/story.ts')
} else {
  runOnPinnedNode()
}

/** A bare `node scripts/demo.mjs` may be an older Node; `npm ci` has put the right one beside us. */
function runOnPinnedNode() {
  const pinned = join(import.meta.dirname, '../node_modules/.bin/node')
  if (!existsSync(pinned)) {
    console.error(
      `The demo needs Node ${NEEDED}, and this is ${process.version}. Run npm ci first.`
    )
    process.exit(1)
  }
  const child = spawn(pinned, process.argv.slice(1), { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
  child.once('exit', (code) => process.exit(code ?? 1))
}
