/*
 * Binds a table of cases to a test runner: the given one, or Japa when called inside a Japa run. Japa is
 * an optional peer, required here and only when it is needed; it must be registered with synchronously,
 * while the spec file is imported.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { DurableError } from '../../foundation/failure.ts'

/** Registers one test: `test` of vitest, of `node:test`, or anything of this shape. */
export interface ContractTest {
  (title: string, run: () => Promise<void>): unknown
  /** Registers one that is reported as skipped. */
  skip?: (title: string, run: () => Promise<void>) => unknown
}

export interface BoundCase {
  title: string
  run(): Promise<void>
  /** Why it is not run. */
  skip?: string
}

/** There is no test runner to bind to. */
export class NoTestRunnerError extends DurableError {
  static override readonly code: string = 'no_test_runner'
}

interface JapaTest {
  skip(skip: boolean, reason: string): JapaTest
  timeout(ms: number): JapaTest
}

interface JapaRunner {
  test: ((title: string, run: () => Promise<void>) => JapaTest) & {
    group(title: string, define: () => void): unknown
  }
}

/** Cases write many rows one by one; a slow database may take its time. */
const CASE_TIMEOUT_MS = 60_000

export function bindCases(name: string, cases: BoundCase[], test?: ContractTest): void {
  if (test) bindTo(test, name, cases)
  else bindToJapa(loadJapa(), name, cases)
}

function bindTo(test: ContractTest, name: string, cases: BoundCase[]): void {
  for (const { title, skip, run } of cases) {
    const full = `${name}: ${title}`
    if (skip === undefined) test(full, run)
    else if (test.skip) test.skip(`${full} (skipped: ${skip})`, run)
    else test(`${full} (skipped: ${skip})`, async () => {})
  }
}

function bindToJapa({ test }: JapaRunner, name: string, cases: BoundCase[]): void {
  test.group(name, () => {
    for (const { title, skip, run } of cases) {
      const registered = test(title, () => run()).timeout(CASE_TIMEOUT_MS)
      if (skip !== undefined) registered.skip(true, skip)
    }
  })
}

/** The application's Japa, or the one beside this package. */
function loadJapa(): JapaRunner {
  let cause: unknown
  for (const from of [join(process.cwd(), 'package.json'), import.meta.url]) {
    try {
      return createRequire(from)('@japa/runner') as JapaRunner
    } catch (error) {
      cause = error
    }
  }
  throw new NoTestRunnerError(
    'This contract binds to Japa, which is not installed here. ' +
      'Pass the test function of another runner as { test }.',
    { cause }
  )
}
