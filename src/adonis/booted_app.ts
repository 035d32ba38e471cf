/*
 * The application of this process, as the provider registered it. Kept on globalThis under a registry
 * symbol: the core's own service module may belong to another copy that never boots, and so may another
 * copy of this file. The first application stays until it is gone; then the next one takes its place.
 */
import { RuntimeException } from '@adonisjs/core/exceptions'
import type { ApplicationService } from '@adonisjs/core/types'
import { systemTimers, type Timers } from '../foundation/clock.ts'

type Follower = (app: ApplicationService) => unknown

interface Slot {
  app?: ApplicationService
  followers: Set<Follower>
}

const APPLICATION: unique symbol = Symbol.for('@agora/durable:application') as never
const holder = globalThis as { [APPLICATION]?: Slot }
const slot = (): Slot => (holder[APPLICATION] ??= { followers: new Set() })

const PATIENCE_MS = 5000

const missing = () =>
  new RuntimeException(
    'durable: no application has registered "@adonis-agora/durable/durable_provider". Add it to the ' +
      'providers in adonisrc.ts (node ace configure @adonis-agora/durable does), and import ' +
      '"@adonis-agora/durable/services/main" only in code that runs inside the application'
  )

/** For the provider: remembers its application, unless a live one is remembered. */
export function captureApplication(app: ApplicationService): void {
  const held = slot()
  if (held.app && held.app !== app && !held.app.isTerminated) return
  held.app = app
  for (const follower of [...held.followers]) follower(app)
}

/** For the provider: forgets its application. */
export function releaseApplication(app: ApplicationService): void {
  if (slot().app === app) slot().app = undefined
}

/** The application, if a provider has registered one. */
export const findBootedApp = (): ApplicationService | undefined => slot().app

/** The application. Throws `RuntimeException` when no provider has registered one. */
export function getBootedApp(): ApplicationService {
  const app = findBootedApp()
  if (!app) throw missing()
  return app
}

/** Calls back with the application of this process, now or when there is one, and with every later one. */
export function followApplication(follower: Follower): void {
  const held = slot()
  held.followers.add(follower)
  if (held.app) follower(held.app)
}

/** The application, waited for. Rejects with the fix when none registers within 5 s. */
export function capturedApplication(timers: Timers = systemTimers): Promise<ApplicationService> {
  const held = slot()
  if (held.app) return Promise.resolve(held.app)
  return new Promise((resolve, reject) => {
    const follower: Follower = (app) => {
      cancel()
      held.followers.delete(follower)
      resolve(app)
    }
    const cancel = timers.after(PATIENCE_MS, () => {
      held.followers.delete(follower)
      reject(missing())
    })
    held.followers.add(follower)
  })
}
