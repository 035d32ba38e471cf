/*
 * What the factories of the config file receive when they are finally called, and how errors of a driver
 * that nobody awaits reach the application's log.
 */
import type { ApplicationService } from '@adonisjs/core/types'

/** Handed to store and transport factories while the engine is built. */
export interface FactoryContext {
  app: Pick<ApplicationService, 'container' | 'config'>
}

/** Writes errors that no caller sees to the application's log. */
export async function errorReporter(
  { app }: FactoryContext,
  source: string
): Promise<(error: unknown) => void> {
  const logger = await app.container.make('logger')
  return (err) => logger.error({ err }, `durable: ${source}`)
}
