/*
 * Optional peers: a driver whose peer is not installed fails with one sentence that says how to install
 * it. Any other failure of an import is passed on untouched.
 */
import { RuntimeException } from '@adonisjs/core/exceptions'

export interface PeerUse {
  peer: string
  /** What needs it, as the application wrote it: `stores.lucid()`. */
  neededBy: string
}

/** What `load` imports. Throws `RuntimeException` when the peer itself is missing. */
export async function loadPeer<T>(load: () => Promise<T>, { peer, neededBy }: PeerUse): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    if (!isMissingModule(cause) || isInstalled(peer)) throw cause
    throw new RuntimeException(
      `durable: ${neededBy} needs the optional peer "${peer}". Install it with: npm i ${peer}`,
      { cause }
    )
  }
}

/** Whatever `load` misses may also be a dependency of an installed peer. */
function isInstalled(peer: string): boolean {
  try {
    import.meta.resolve(peer)
    return true
  } catch (error) {
    return !isMissingModule(error)
  }
}

function isMissingModule(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'ERR_MODULE_NOT_FOUND'
}
