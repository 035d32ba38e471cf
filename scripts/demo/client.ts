/*
 * The shop as its customers and its staff see it: over HTTP. And the journal, in which the bodies of its
 * steps note that they run.
 */
import { readFileSync } from 'node:fs'
import type { JournalLine, Report } from './report.ts'

export class Client {
  readonly #url: string
  readonly #journalFile: string

  constructor({ url, journalFile }: { url: string; journalFile: string }) {
    this.#url = url
    this.#journalFile = journalFile
  }

  async isUp(): Promise<boolean> {
    try {
      await this.report()
      return true
    } catch {
      return false
    }
  }

  async placeOrder(input: object): Promise<void> {
    await this.#send('POST', '/orders', input)
  }

  async approve(id: string, by: string): Promise<void> {
    await this.#send('POST', `/orders/${id}/approval`, { approved: true, by })
  }

  async report(): Promise<Report> {
    return (await this.#send('GET', '/report')) as Report
  }

  journal(): JournalLine[] {
    const text = readFileSync(this.#journalFile, { encoding: 'utf8', flag: 'a+' })
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as JournalLine)
  }

  async #send(method: string, path: string, body?: object): Promise<unknown> {
    const response = await fetch(this.#url + path, {
      method,
      headers: { 'accept': 'application/json', 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
}
