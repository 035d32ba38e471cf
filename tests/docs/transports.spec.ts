/*
 * The pages of transports that cross processes: each says what it promises, what it looks for and is told,
 * what tuning costs and how it fails, and lists the options that there are.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '@japa/runner'
import { namesUnder, pages, ROOT } from './markdown.ts'

const SECTIONS = [
  'What it guarantees',
  'What it polls, what it pushes',
  'Options',
  'Tuning, and what it costs',
  'When something fails',
]

/** For tests, for the factory, or without effect. */
const UNLISTED = ['clock', 'timers', 'logger', 'group']

const PAGES = pages()

/** The members of the interface that a driver calls its config. */
function optionsOf(driver: string): string[] {
  const source = readFileSync(join(ROOT, `src/transport/${driver}/options.ts`), 'utf8')
  const [, body] = /^export interface \w+TransportConfig \{\n(.*?)^\}/ms.exec(source) ?? []
  return Array.from(body.matchAll(/^ {2}(\w+)\??:/gm), ([, name]) => name)
}

test.group('documentation | transports', () => {
  for (const driver of ['bullmq', 'db', 'queue']) {
    const page = PAGES.find(({ file }) => file === `docs/transports/${driver}.md`)!

    test(`the page of ${driver} has its sections, in order`, ({ assert }) => {
      const headings = Array.from(page.prose.matchAll(/^## (.+)$/gm), ([, heading]) => heading)
      assert.deepEqual(
        headings.filter((heading) => SECTIONS.includes(heading)),
        SECTIONS
      )
      const parts = page.prose.split(/^## /m).slice(1)
      for (const part of parts) assert.isAbove(part.length, 200, part)
    })

    test(`the page of ${driver} lists its options`, ({ assert }) => {
      const options = optionsOf(driver).filter((name) => !UNLISTED.includes(name))
      assert.isAbove(options.length, 10)
      assert.sameMembers(namesUnder(page, 'Options'), options)
    })
  }
})
