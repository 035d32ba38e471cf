/*
 * Natural batching: the first item flushes at once; items that arrive while a flush is in flight form
 * the next one. Nothing ever waits for a batch to fill, so a single item's latency is untouched.
 */
import { type Deferred, deferred } from './deferred.ts'

interface Entry<In, Out> {
  item: In
  answer: Deferred<Out>
}

export class Batcher<In, Out> {
  #waiting: Entry<In, Out>[] = []
  #flights = 0
  readonly #flush: (items: In[]) => Promise<Out[]>
  readonly #max: number
  readonly #parallel: number

  /**
   * `flush` receives up to `max` items and answers one result per item, in order. A flush that rejects
   * rejects every item of it. At most `parallel` flushes are in flight.
   */
  constructor(
    flush: (items: In[]) => Promise<Out[]>,
    options: { max?: number; parallel?: number } = {}
  ) {
    this.#flush = flush
    this.#max = options.max ?? 500
    this.#parallel = options.parallel ?? 1
  }

  add(item: In): Promise<Out> {
    const answer = deferred<Out>()
    this.#waiting.push({ item, answer })
    this.#next()
    return answer.promise
  }

  #next(): void {
    while (this.#waiting.length > 0 && this.#flights < this.#parallel) {
      this.#flights += 1
      void this.#fly(this.#waiting.splice(0, this.#max))
    }
  }

  async #fly(batch: Entry<In, Out>[]): Promise<void> {
    try {
      const answers = await this.#flush(batch.map((entry) => entry.item))
      batch.forEach((entry, i) => entry.answer.resolve(answers[i]))
    } catch (error) {
      for (const entry of batch) entry.answer.reject(error)
    } finally {
      this.#flights -= 1
      this.#next()
    }
  }
}
