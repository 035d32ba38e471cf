/*
 * Local workers: step handlers that run in the engine's own process, on the transport that lives and dies
 * with it. A task that died with its process must come back; one that is alive anywhere must not be
 * started a second time.
 */
import { InMemoryTransport } from '../../src/transport/memory/memory_transport.ts'
import { type StepInput, stepOutput } from './broker.ts'
import type { Effects } from './effects.ts'
import type { Random } from './random.ts'
import type { SimProcess } from './sim_process.ts'
import { leavesOf, nameOf, type Program } from './programs.ts'
import type { ProcessTime } from './virtual_time.ts'

export interface WorkersWorld {
  random: Random
  effects: Effects
  fail(kind: string, text: string): void
  note(text: () => string): void
}

export class LocalWorkers {
  readonly #world: WorkersWorld
  /** Steps that run somewhere, and whether their process lives. */
  readonly #running = new Map<string, ProcessTime>()
  tasks = 0

  constructor(world: WorkersWorld) {
    this.#world = world
  }

  connect(time: ProcessTime): InMemoryTransport {
    const transport = new InMemoryTransport({ clock: time.clock, timers: time, onError: () => {} })
    time.onDeath = () => void transport.close()
    return transport
  }

  /** Serves every step of a program. */
  serve({ engine, id, time }: SimProcess, program: Program): void {
    engine.handle('undo', (input) => {
      const { input: undone } = input as { input: StepInput }
      return this.#undo(undone, id, time)
    })
    for (const leaf of leavesOf(program.root)) {
      if (leaf.t !== 'step' && !(leaf.t === 'fan' && !leaf.program)) continue
      engine.handle(nameOf(leaf), (input) => this.#step(input as StepInput, id, time))
    }
  }

  async #step(input: StepInput, process: string, time: ProcessTime): Promise<string> {
    const { random } = this.#world
    const { run, id, index, bad } = input
    await this.#work(`${run} step ${id} ${index ?? ''}`, process, time)
    if (random() < (bad ? 0.5 : 0.03)) throw new Error(`s${id} ${id}`)
    return stepOutput(input, random())
  }

  async #undo({ run, id, undo }: StepInput, process: string, time: ProcessTime): Promise<string> {
    const { random, effects } = this.#world
    await this.#work(`${run} undo ${id}`, process, time)
    if (random() < (undo === 'bad' ? 0.5 : 0.02)) throw new Error(`undo ${id}`)
    if (time.alive) effects.undone(run, `s${id}`)
    return 'undone'
  }

  async #work(key: string, process: string, time: ProcessTime): Promise<void> {
    const { random, fail, note } = this.#world
    if (!time.alive) return
    this.tasks++
    note(() => `${process} works on ${key}`)
    if (this.#running.get(key)?.alive) fail('doubled', `${key} is alive and starts again`)
    this.#running.set(key, time)
    const k = random()
    await time.sleep((k < 0.3 ? 30 : k < 0.8 ? 600 : 2000) * random())
    this.#running.delete(key)
  }
}
