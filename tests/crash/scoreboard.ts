/*
 * Counts and says what passed and what failed, as it happens.
 */
export class Scoreboard {
  passed = 0
  failed = 0
  readonly #failures: string[] = []
  readonly #startedAt = performance.now()

  say(text: string): void {
    const seconds = ((performance.now() - this.#startedAt) / 1000).toFixed(1).padStart(6)
    process.stdout.write(`${seconds} s  ${text}\n`)
  }

  pass(what: string): void {
    this.passed += 1
    this.say(`ok      ${what}`)
  }

  fail(what: string, problems: string[], detail?: string): void {
    this.failed += 1
    this.say(`FAILED  ${what}`)
    for (const problem of problems) process.stdout.write(`    - ${problem}\n`)
    if (detail) process.stdout.write(`${detail}\n`)
    this.#failures.push(`${what}: ${problems[0]}`)
  }

  /** Ends the report with the one line that `.ci/run` reads. */
  end(): void {
    for (const failure of this.#failures) process.stdout.write(`\nfailed: ${failure}`)
    process.stdout.write(`\n${this.passed} passed, ${this.failed} failed\n`)
  }
}
