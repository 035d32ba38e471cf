/*
 * The adapter of config/queue.ts that a transport works with: one of its own, so that its worker id is
 * that of the transport.
 */
import { RuntimeException } from '@adonisjs/core/exceptions'
import type { QueueAdapter } from '../transport/queue/queue_transport.ts'
import type { FactoryContext } from './factory_context.ts'
import { loadPeer } from './peer.ts'

type MakeAdapter = () => QueueAdapter

/** As much of config/queue.ts as is read here. */
interface QueueConfig {
  default?: string
  adapters?: Record<string, MakeAdapter | { resolver(app: unknown): Promise<MakeAdapter> }>
}

/**
 * What makes the adapter. Throws `RuntimeException` when the peer is not installed or not configured, or
 * has no adapter of that name, with what to do.
 */
export async function queueAdapter(
  { app }: FactoryContext,
  connection?: string
): Promise<MakeAdapter> {
  const config = app.config.get<QueueConfig | undefined>('queue')
  if (!config) {
    const use = { peer: '@adonisjs/queue', neededBy: 'transports.queue()' }
    await loadPeer(() => import('@adonisjs/queue'), use)
    throw new RuntimeException(
      'durable: transports.queue() found no config/queue.ts. Run: node ace configure @adonisjs/queue'
    )
  }
  const name = connection ?? config.default
  if (name === undefined) {
    throw new RuntimeException(
      'durable: transports.queue() knows no adapter: config/queue.ts has no `default`. ' +
        'Name one of its adapters: transports.queue({ connection: … })'
    )
  }
  const found = config.adapters?.[name]
  if (found === undefined) {
    const known = Object.keys(config.adapters ?? {}).map((key) => `"${key}"`)
    throw new RuntimeException(
      `durable: transports.queue({ connection: "${name}" }) in config/durable.ts names no adapter of ` +
        `config/queue.ts (it has ${known.join(', ') || 'none'})`
    )
  }
  return typeof found === 'function' ? found : found.resolver(app)
}
