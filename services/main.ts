/*
 * The engine of the application, and the gateway to its runs, ready once it has booted. Import it in code
 * that runs inside the application: never in config/durable.ts, and in a workflow or step file only if its
 * module body does not use it. In a process that boots several applications, they are those of the last.
 */
import type { ApplicationService } from '@adonisjs/core/types'
import { capturedApplication, followApplication } from '../src/adonis/booted_app.ts'
import { RUN_GATEWAY } from '../src/adonis/tokens.ts'
import { WorkflowEngine } from '../src/engine/workflow_engine.ts'
import { bestEffort } from '../src/foundation/failure.ts'
import type { RunGateway } from '../src/gateway/main.ts'

let engine: WorkflowEngine
let runGateway: RunGateway

const app = await capturedApplication()

/** Rejects for an application that cannot build its engine. */
const follow = (booted: ApplicationService): Promise<void> =>
  booted.booted(async () => {
    engine = await booted.container.make(WorkflowEngine)
    runGateway = (await booted.container.make(RUN_GATEWAY)) as RunGateway
  })

await follow(app)

followApplication((later) => {
  if (later === app) return
  void bestEffort('its own boot fails, or has said why', follow(later))
})

export { engine as default, runGateway }
