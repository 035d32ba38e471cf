/*
 * The engine of the application, ready once it has booted. Import it in code that runs inside the
 * application: never in config/durable.ts, and in a workflow or step file only if its module body does
 * not use it. In a process that boots several applications, it is the engine of the last one.
 */
import { capturedApplication, followApplication } from '../src/adonis/booted_app.ts'
import { WorkflowEngine } from '../src/engine/workflow_engine.ts'
import { bestEffort } from '../src/foundation/failure.ts'

let engine: WorkflowEngine

const app = await capturedApplication()

/** Rejects for an application that cannot build its engine. */
await app.booted(async () => {
  engine = await app.container.make(WorkflowEngine)
})

followApplication((later) => {
  if (later === app) return
  const booted = later.booted(async () => {
    engine = await later.container.make(WorkflowEngine)
  })
  void bestEffort('its own boot fails, or has said why', booted)
})

export { engine as default }
