/*
 * What the tests of the documentation read of a Markdown page: fenced blocks, links, headings, tables.
 * No full parser: the pages keep to the plain forms that this file knows.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

/** A fenced block. `line` is that of its first line of code, 1-based. */
export interface Block {
  line: number
  language: string
  /** The words after the language. */
  flags: string[]
  code: string
  /** Named by `<!-- prelude: name -->` just before the fence. */
  prelude?: string
  /** The text just above the fence (and above that comment). */
  above: string
}

export interface Link {
  line: number
  target: string
}

export interface Table {
  /** The heading above it. */
  heading: string
  rows: string[][]
}

export interface Page {
  /** Relative to the root of the repository. */
  file: string
  blocks: Block[]
  links: Link[]
  /** Anchors of the headings, as GitHub derives them. */
  anchors: Set<string>
  tables: Table[]
  /** Everything outside of fenced blocks. */
  prose: string
}

const FENCE = /^(\s*)```(.*)$/
const PRELUDE = /^<!--\s*prelude:\s*([\w-]+)\s*-->$/

export function pages(): Page[] {
  const files = ['README.md', 'ARCHITECTURE.md', ...globSync('docs/**/*.md', { cwd: ROOT }).sort()]
  return files.map((file) => readPage(file, readFileSync(join(ROOT, file), 'utf8')))
}

export function readPage(file: string, text: string): Page {
  const page: Page = { file, blocks: [], links: [], anchors: new Set(), tables: [], prose: '' }
  const lines = text.split('\n')
  const prose: string[] = []
  for (let i = 0; i < lines.length; i++) {
    const fence = FENCE.exec(lines[i])
    if (!fence) {
      prose.push(lines[i])
      continue
    }
    const end = lines.findIndex((line, at) => at > i && line.trim() === '```')
    page.blocks.push(readBlock(lines, i, end, fence))
    // Keep the line numbers of what follows.
    for (; i < end; i++) prose.push('')
    prose.push('')
  }
  page.prose = prose.join('\n')
  readLinks(prose, page)
  readHeadings(prose, page)
  readTables(prose, page)
  return page
}

function readBlock(lines: string[], start: number, end: number, fence: RegExpExecArray): Block {
  const [, indent, info] = fence
  const [language, ...flags] = info.trim().split(/\s+/)
  let above = lastLine(lines, start - 1)
  const prelude = PRELUDE.exec(lines[above]?.trim() ?? '')?.[1]
  if (prelude !== undefined) above = lastLine(lines, above - 1)
  let top = above
  while (top > 0 && lines[top - 1].trim() !== '') top -= 1
  return {
    line: start + 2,
    language,
    flags,
    code: lines
      .slice(start + 1, end)
      .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
      .join('\n'),
    prelude,
    above: lines.slice(top, above + 1).join('\n'),
  }
}

/** The last line at or before `from` that is not blank. */
function lastLine(lines: string[], from: number): number {
  let at = from
  while (at > 0 && lines[at].trim() === '') at -= 1
  return at
}

function readLinks(prose: string[], page: Page): void {
  prose.forEach((text, at) => {
    const plain = text.replace(/`[^`]*`/g, (code) => ' '.repeat(code.length))
    for (const [, target] of plain.matchAll(/\]\(([^)\s]+)\)/g)) {
      page.links.push({ line: at + 1, target })
    }
  })
}

function readHeadings(prose: string[], page: Page): void {
  const seen = new Map<string, number>()
  for (const text of prose) {
    const heading = /^#{1,6}\s+(.*)$/.exec(text)?.[1]
    if (heading === undefined) continue
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    page.anchors.add(count === 0 ? slug : `${slug}-${count}`)
  }
}

function readTables(prose: string[], page: Page): void {
  let heading = ''
  let table: Table | undefined
  for (const text of prose) {
    heading = /^#{1,6}\s+(.*)$/.exec(text)?.[1] ?? heading
    if (!text.startsWith('|')) {
      table = undefined
      continue
    }
    if (!table) page.tables.push((table = { heading, rows: [] }))
    const cells = text.split(/(?<!\\)\|/).slice(1, -1)
    if (cells.every((cell) => /^\s*:?-+:?\s*$/.test(cell))) continue
    table.rows.push(cells.map((cell) => cell.trim()))
  }
}

/** The names in the first column of every table under a heading, without the header row. */
export function namesUnder(page: Page, heading: string): string[] {
  return page.tables
    .filter((table) => table.heading === heading)
    .flatMap((table) => table.rows.slice(1))
    .flatMap(([first]) => [...first.matchAll(/`([^`]+)`/g)].map(([, name]) => name))
}
