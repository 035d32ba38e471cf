/*
 * Which stores the state-store contract is bound to, read from the specs beside this one.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'

/** Each passes every case. */
const KINDS = [
  'the in-memory store',
  'Lucid on SQLite',
  'Lucid on Postgres',
  'Lucid on MySQL',
  'a codec store over the in-memory store',
  'a codec store over Lucid on SQLite',
]

/** To the end of the call, at its own indent; its first argument. */
const CALL = /^( *)runStateStoreContract\(\s*([^,]+),[^]*?^\1}?\)$/gm

/** Names of contracts, and whether cases are left out. */
function* bound(): Generator<[name: string, complete: boolean]> {
  for (const file of readdirSync(import.meta.dirname)) {
    if (!file.endsWith('.spec.ts') || /^(binding|kinds)\./.test(file)) continue
    const text = readFileSync(join(import.meta.dirname, file), 'utf8')
    for (const [call, , given] of text.matchAll(CALL)) {
      const named = /^'(.*)'$/.exec(given)?.[1]
      const names = named ? [named] : [...text.matchAll(/[?:] '([^']+)'/g)].map((found) => found[1])
      for (const name of names) yield [name, !/except|supports\w+: false/.test(call)]
    }
  }
}

test('the contract is bound to six stores, without exceptions', ({ assert }) => {
  const complete = [...bound()].filter(([, whole]) => whole).map(([name]) => name)
  assert.includeMembers(complete, KINDS)
})
