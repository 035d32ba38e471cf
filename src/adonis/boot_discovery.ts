/*
 * Discovery at boot: registers the workflows and serves the steps of the application's directories, by
 * their generated barrels where there are any. Classes are built by the container, once each. The two are
 * independent of each other.
 */
import type { ApplicationService } from '@adonisjs/core/types'
import type { InstanceFactory } from '../authoring/discovery.ts'
import { registerStepsFromBarrel, registerStepsFromDir } from '../authoring/discover_steps.ts'
import {
  registerWorkflowsFromBarrel,
  registerWorkflowsFromDir,
  type WorkflowRegistrar,
} from '../authoring/discover_workflows.ts'
import type { StepServer } from '../types/step.ts'
import type { WorkflowMeta } from '../types/workflow.ts'
import { usableBarrel } from './barrels.ts'
import type { DurableConfig } from './define_config.ts'

export interface DiscoveryAtBoot {
  app: ApplicationService
  config: DurableConfig
  engine: WorkflowRegistrar & StepServer
  /** Some transport can run step bodies in this process. */
  servesSteps: boolean
  warn: (message: string) => void
}

/**
 * Answers what it registered. Rejects when two classes claim one name, and when a module, a barrel or a
 * constructor throws.
 */
export async function discoverAtBoot(options: DiscoveryAtBoot): Promise<WorkflowMeta[]> {
  const workflows = await discoverWorkflows(options)
  if (options.servesSteps) await discoverSteps(options)
  return workflows
}

async function discoverWorkflows(options: DiscoveryAtBoot): Promise<WorkflowMeta[]> {
  const { app, config, engine, warn } = options
  const directories = directoriesOf(app, config.workflowsPath, 'app/workflows')
  if (directories.length === 0) return []
  const barrel = await usableBarrel({ app, kind: 'workflows', directories, warn })
  return barrel
    ? registerWorkflowsFromBarrel(engine, barrel, factoryOf(app), { appRoot: app.appRoot, warn })
    : registerWorkflowsFromDir(engine, directories, factoryOf(app), { warn })
}

async function discoverSteps({ app, config, engine, warn }: DiscoveryAtBoot): Promise<void> {
  const directories = directoriesOf(app, config.stepsPath, 'app/steps')
  if (directories.length === 0) return
  const barrel = await usableBarrel({ app, kind: 'steps', directories, warn })
  if (barrel) await registerStepsFromBarrel(engine, barrel, factoryOf(app))
  else await registerStepsFromDir(engine, directories, factoryOf(app))
}

const factoryOf =
  (app: ApplicationService): InstanceFactory =>
  (target) =>
    app.container.make(target)

function directoriesOf(
  app: ApplicationService,
  configured: string | string[] | false | undefined,
  fallback: string
): string[] {
  const paths = configured === undefined ? fallback : configured || []
  return [...new Set([paths].flat().map((path) => app.makePath(path)))]
}
