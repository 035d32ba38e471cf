/*
 * Debug channels: NODE_DEBUG=durable:turns prints what a room does.
 */
import { debuglog } from 'node:util'

export const debug = (room: string): ((message: string, ...params: unknown[]) => void) =>
  debuglog(`durable:${room}`)
