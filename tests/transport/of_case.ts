/*
 * Benches for the cases of a contract, which clean up by themselves.
 */
import type { TestContext } from '@japa/runner/core'

/** A bench of one case, and the end of it. */
export async function ofCase<Bench, Made>(
  open: (cleanup: TestContext['cleanup']) => Bench | Promise<Bench>,
  make: (bench: Bench) => Made
): Promise<Made & { cleanup(): Promise<void> }> {
  const undo: (() => unknown)[] = []
  const bench = await open((fn) => void undo.push(fn as () => unknown))
  const cleanup = async () => {
    for (const each of undo.reverse()) await each()
  }
  return { ...make(bench), cleanup }
}
