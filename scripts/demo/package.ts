/*
 * The package as a user gets it: built if the build is missing or older than its sources, and put into the
 * shop's node_modules file by file as `npm pack` would. Everything else the shop needs it finds in the
 * node_modules of the repository. Nothing that git tracks is touched.
 */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runToEnd } from './commands.ts'
import { ROOT, SHOP } from './places.ts'

const SOURCES = [
  'index.ts',
  'configure.ts',
  'package.json',
  'tsconfig*.json',
  '{src,providers,services,commands,stubs}/**/*.{ts,stub}',
]

/** Written last by the build. */
const BUILT = 'build/commands/main.js'

export function isBuildStale(): boolean {
  const builtAt = statSync(join(ROOT, BUILT), { throwIfNoEntry: false })?.mtimeMs
  if (builtAt === undefined) return true
  const sources = globSync(SOURCES, { cwd: ROOT })
  return sources.some((file) => statSync(join(ROOT, file)).mtimeMs > builtAt)
}

export const build = () => npm('run', 'build')

/** Answers how many files the package has. */
export async function installIntoShop(): Promise<number> {
  const { name } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { name: string }
  const packed = await npm('pack', '--dry-run', '--json', '--ignore-scripts')
  const [{ files }] = Object.values(JSON.parse(packed)) as [{ files: { path: string }[] }]
  const target = join(SHOP, 'node_modules', name)
  rmSync(target, { recursive: true, force: true })
  for (const { path } of files) {
    mkdirSync(dirname(join(target, path)), { recursive: true })
    cpSync(join(ROOT, path), join(target, path))
  }
  await runToEnd(process.execPath, ['scripts/check_build.mjs', target], { cwd: ROOT })
  return files.length
}

/** By way of the npm that runs us, else the one on the path. */
function npm(...args: string[]): Promise<string> {
  const script = process.env.npm_execpath
  return script?.endsWith('npm-cli.js')
    ? runToEnd(process.execPath, [script, ...args], { cwd: ROOT })
    : runToEnd('npm', args, { cwd: ROOT, shell: process.platform === 'win32' })
}
