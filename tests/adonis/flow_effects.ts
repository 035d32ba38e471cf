/*
 * What the options do that are about flow control: one proof each, for config_effects.spec.ts.
 */
import type { Assert } from '@japa/assert'
import type {
  AdmissionBackend,
  DurableConfig,
  ControlPlane,
  InMemoryStateStore,
  WorkflowEngine,
} from '../../index.ts'
import { InMemoryAdmissionBackend } from '../../src/flow/memory_admission.ts'

interface Rig {
  assert: Assert
  boot(
    config: DurableConfig
  ): Promise<{ app: App; engine: WorkflowEngine; store: InMemoryStateStore }>
}

interface App {
  terminate(): Promise<void>
}

export const FLOW_EFFECTS = { queues: gates, admission: decides, controlPlane: tells }

/** Starts two runs of one step through the queue `q`; answers how many steps are out. */
async function twoCalls(engine: WorkflowEngine): Promise<number> {
  engine.register('w', '1', (ctx) => ctx.step('far', null, { queue: 'q' }))
  engine.handle('far', () => new Promise(() => {}))
  for (const id of ['a', 'b']) {
    await engine.start('w', null, id)
    await engine.waitForRun(id, { timeoutMs: 5000 })
  }
  const rows = [...(await engine.listCheckpoints('a')), ...(await engine.listCheckpoints('b'))]
  return rows.length
}

async function gates({ assert, boot }: Rig): Promise<void> {
  const free = await boot({})
  assert.equal(await twoCalls(free.engine), 2)
  const gated = await boot({ queues: [{ name: 'q', concurrency: 1 }] })
  assert.equal(await twoCalls(gated.engine), 1)
  // What code registers later wins.
  const replaced = await boot({ queues: [{ name: 'q', concurrency: 1 }] })
  replaced.engine.registerQueue({ name: 'q', concurrency: 2 })
  assert.equal(await twoCalls(replaced.engine), 2)
}

async function decides({ assert, boot }: Rig): Promise<void> {
  const queues = [{ name: 'q', concurrency: 9 }]
  for (const build of [(one: AdmissionBackend) => one, (one: AdmissionBackend) => () => one]) {
    let closed = 0
    const admission = new InMemoryAdmissionBackend()
    admission.tryAdmit = async () => ({ admitted: false, retryAt: Date.now() + 60_000 })
    const own: AdmissionBackend = Object.assign(admission, { close: async () => void closed++ })
    const { app, engine } = await boot({ queues, admission: build(own) })
    assert.isTrue(own.handles('q'))
    assert.equal(await twoCalls(engine), 0)
    await app.terminate()
    assert.equal(closed, 1)
  }
}

async function tells({ assert, boot }: Rig): Promise<void> {
  for (const build of [(one: ControlPlane) => one, (one: ControlPlane) => () => one]) {
    let closed = 0
    const kinds: string[] = []
    const own: ControlPlane = {
      publishControl: async ({ kind }) => void kinds.push(kind),
      onControl: () => {},
      close: async () => void closed++,
    }
    const { app, engine } = await boot({ controlPlane: build(own) })
    engine.register('w', '1', async () => 1)
    await engine.start('w', null, 'r')
    await engine.waitForRun('r', { terminal: true, timeoutMs: 5000 })
    assert.includeMembers(kinds, ['enqueued', 'event'])
    await app.terminate()
    assert.equal(closed, 1)
  }
}
