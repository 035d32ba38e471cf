/*
 * Interceptors: an onion around each real attempt of a local body, first registered outermost.
 */
import type { StepInterceptor, StepInvocation } from '../types/engine_event.ts'

export class InterceptorChain {
  readonly #chain: { call: StepInterceptor }[] = []

  /** Adds one; the answer removes this one registration. */
  use(interceptor: StepInterceptor): () => void {
    const entry = { call: interceptor }
    this.#chain.push(entry)
    return () => {
      const at = this.#chain.indexOf(entry)
      if (at >= 0) this.#chain.splice(at, 1)
    }
  }

  around(invocation: StepInvocation, body: () => Promise<unknown>): Promise<unknown> {
    const chain = [...this.#chain]
    const enter = async (depth: number): Promise<unknown> =>
      depth === chain.length ? body() : chain[depth].call(invocation, () => enter(depth + 1))
    return enter(0)
  }
}
