import { appendFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import app from '@adonisjs/core/services/app'
import env from '#start/env'

/*
 * Counts executions of step bodies, outside of everything that is durable: a file that is only appended
 * to. A real shop would not need it. Here it shows what ran how often, and in which process.
 */

export interface JournalLine {
  event: 'begin' | 'end' | 'error'
  order: string
  body: string
  process: string
}

const path = env.get('JOURNAL_FILE', app.makePath('journal.log'))
const processName = env.get('PROCESS_NAME', `process ${process.pid}`)

/** Runs a step body and notes when it begins and how it ends. */
export async function noted<T>(
  order: string,
  body: string,
  work: () => Promise<T> | T
): Promise<T> {
  const note = (event: JournalLine['event']) => {
    const line: JournalLine = { event, order, body, process: processName }
    appendFileSync(path, `${JSON.stringify(line)}\n`)
  }
  note('begin')
  try {
    const answer = await work()
    note('end')
    return answer
  } catch (error) {
    note('error')
    throw error
  }
}

export async function readJournal(): Promise<JournalLine[]> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as JournalLine)
}
