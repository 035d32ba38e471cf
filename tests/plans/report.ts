/*
 * One table a database, a line a statement, and what passed and what failed.
 */
import { messageOf } from '../../src/foundation/failure.ts'
import type { Case } from './case.ts'
import type { Plan } from './explain.ts'

const NAME = 34
const INDEXES = 44

export class Report {
  passed = 0
  failed = 0
  readonly #failures: string[] = []
  readonly #startedAt = performance.now()
  #title = ''

  say(text: string): void {
    const seconds = ((performance.now() - this.#startedAt) / 1000).toFixed(1)
    process.stdout.write(`\n── ${text} (after ${seconds} s)\n`)
  }

  begin(title: string): void {
    this.#title = title
    this.say(title)
    this.#line(
      '',
      'statement',
      'index',
      ['read', 'answered', 'allowed', 'ms'],
      'allowed: rows for each …'
    )
  }

  add(one: Case, plan: Plan, answered: number, allowed: number): void {
    const problems = [
      ...(one.ofAll ? [] : plan.scans).map((scanned) => `reads all of ${scanned}`),
      ...(plan.read > allowed ? [`reads ${plan.read} rows of at most ${allowed}`] : []),
      ...(answered > 0 && plan.read === 0 ? ['what it reads was not counted'] : []),
      ...(answered === 0 && one.finds === undefined ? ['answers nothing'] : []),
    ]
    if (problems.length === 0) this.passed += 1
    else this.#fail(one.name, problems.join('; '))
    const basis = `${one.times} × ${one.basis?.words ?? 'answered'} + ${one.plus}`
    const numbers = [plan.read, answered, allowed].map(String)
    const indexes = [...plan.indexes].sort().join(' ')
    const mark = problems.length > 0 ? `${basis}   FAILED: ${problems.join('; ')}` : basis
    this.#line('', one.name, indexes, [...numbers, plan.ms.toFixed(1)], mark)
  }

  broken(name: string, error: unknown): void {
    // The databases end with what is wrong; the statement comes before.
    const problem = messageOf(error).replace(/\s+/g, ' ').slice(-300)
    this.#fail(name, problem)
    process.stdout.write(`${name.padEnd(NAME)} FAILED: ${problem}\n`)
  }

  /** Ends the report with the one line that `.ci/run` reads. */
  end(): void {
    for (const failure of this.#failures) process.stdout.write(`\nfailed: ${failure}`)
    process.stdout.write(`\n${this.passed} passed, ${this.failed} failed\n`)
  }

  #fail(name: string, problem: string): void {
    this.failed += 1
    this.#failures.push(`${this.#title}: ${name}: ${problem}`)
  }

  #line(mark: string, name: string, indexes: string, numbers: string[], end: string): void {
    const columns = numbers.map((each) => each.padStart(9)).join('')
    process.stdout.write(
      `${mark}${name.padEnd(NAME)} ${indexes.padEnd(INDEXES)}${columns}  ${end}\n`
    )
  }
}
