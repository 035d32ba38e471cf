/*
 * Discovery at boot: registers the workflows and serves the steps of the application's directories.
 * Classes are built by the container, once each. The two are independent of each other.
 */
import type { ApplicationService } from '@adonisjs/core/types'
import type { InstanceFactory } from '../authoring/discovery.ts'
import { registerStepsFromDir } from '../authoring/discover_steps.ts'
import {
  registerWorkflowsFromDir,
  type WorkflowRegistrar,
} from '../authoring/discover_workflows.ts'
import type { StepServer } from '../types/step.ts'
import type { DurableConfig } from './define_config.ts'

export interface DiscoveryAtBoot {
  app: ApplicationService
  config: DurableConfig
  engine: WorkflowRegistrar & StepServer
  /** Some transport can run step bodies in this process. */
  servesSteps: boolean
  warn: (message: string) => void
}

/** Rejects when two classes claim one name, and when a module or a constructor throws. */
export async function discoverAtBoot(options: DiscoveryAtBoot): Promise<void> {
  const { app, config, engine, servesSteps, warn } = options
  const build: InstanceFactory = (target) => app.container.make(target)
  const workflows = directories(app, config.workflowsPath, 'app/workflows')
  const steps = directories(app, config.stepsPath, 'app/steps')
  if (workflows.length > 0) await registerWorkflowsFromDir(engine, workflows, build, { warn })
  if (steps.length > 0 && servesSteps) await registerStepsFromDir(engine, steps, build)
}

function directories(
  app: ApplicationService,
  configured: string | string[] | false | undefined,
  fallback: string
): string[] {
  const paths = configured === undefined ? fallback : configured || []
  return [...new Set([paths].flat().map((path) => app.makePath(path)))]
}
