/*
 * Looks at a finished build as a consumer would: every file that package.json promises exists, every
 * stub was copied, the index of commands is there. Prints what is missing and exits with 1.
 *
 *   node scripts/check_build.mjs [folder of the package]
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { argv, exit } from 'node:process'

const COMMANDS_INDEX = ['commands.json', 'main.js', 'main.d.ts']

const root = resolve(argv[2] ?? '.')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const promised = [
  ...filesOf(manifest.exports),
  ...filesOf(manifest.main),
  ...filesOf(manifest.types),
  ...globSync('stubs/**/*.stub', { cwd: root }).map((stub) => `build/${stub}`),
  ...COMMANDS_INDEX.map((file) => `build/commands/${file}`),
].map((file) => file.replace(/^\.\//, ''))

const missing = [...new Set(promised)].filter((file) => !isThere(file)).sort()

if (missing.length > 0) {
  console.error(`The build lacks:\n  ${missing.join('\n  ')}`)
  exit(1)
}
console.log('The build is complete.')

/** Every path in an exports map, whatever its conditions. */
function filesOf(target) {
  if (!target) return []
  return typeof target === 'string' ? [target] : Object.values(target).flatMap(filesOf)
}

function isThere(file) {
  return file.includes('*')
    ? globSync(file, { cwd: root }).length > 0
    : existsSync(join(root, file))
}
