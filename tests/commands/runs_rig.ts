/*
 * Commands about runs inside a console application, over a store that the test has filled.
 */
import { getActiveTestOrFail } from '@japa/runner'
import { stripVTControlCharacters } from 'node:util'
import type { BaseCommand } from '@adonisjs/core/ace'
import type { ApplicationService } from '@adonisjs/core/types'
import { defineConfig, InMemoryStateStore, type StateStore, type WorkflowRun } from '../../index.ts'
import { startApp } from '../adonis/app.ts'

export interface Outcome {
  exitCode: number | undefined
  stdout: string[]
  stderr: string[]
}

export interface Rig {
  app: ApplicationService
  store: InMemoryStateStore
  /** Runs a command of a process of its own. */
  run(command: CommandClass, args: string[]): Promise<Outcome>
}

type CommandClass = typeof BaseCommand

export const storedRun = (id: string, patch: Partial<WorkflowRun> = {}): WorkflowRun => ({
  id,
  workflow: 'checkout',
  workflowVersion: '4',
  status: 'completed',
  namespace: 'default',
  input: { amount: 249 },
  createdAt: new Date('2026-01-01T00:00:00Z'),
  updatedAt: new Date('2026-01-01T00:00:00Z'),
  ...patch,
})

export async function rig(given: Partial<StateStore> = {}): Promise<Rig> {
  const store = Object.assign(new InMemoryStateStore(), given)
  const boot = () =>
    startApp({
      environment: 'console',
      durable: defineConfig({ store: 'memory', stores: { memory: store } }),
    })
  const app = await boot()
  getActiveTestOrFail().cleanup(() => app.terminate())
  return {
    app,
    store,
    async run(Command, args) {
      const ace = await app.container.make('ace')
      ace.ui.switchMode('raw')
      const command = await ace.create(Command, args)
      await command.exec()
      const logs = command.logger.getLogs()
      const of = (stream: string) =>
        logs
          .filter((log) => log.stream === stream)
          .map(({ message }) => stripVTControlCharacters(message))
      return { exitCode: command.exitCode, stdout: of('stdout'), stderr: of('stderr') }
    },
  }
}
