/*
 * A process to kill: serves the step "held", or consumes results, runs or decisions, and never finishes.
 * Arguments: connection, prefix, what. Says "taken" for each message it holds, and "ready" once it serves.
 */
import { BullMQTransport } from '../../../src/transport/bullmq/bullmq_transport.ts'

const [, , connection, prefix, what] = process.argv
const transport = await BullMQTransport.create({
  connection,
  prefix,
  lockDuration: 500,
  stalledInterval: 250,
  closeTimeoutMs: 100,
  maxStalledCount: 1,
})
const hold = async (): Promise<never> => {
  process.send?.('taken')
  return new Promise(() => {})
}
if (what === 'steps') transport.handle('held', hold)
if (what === 'results') transport.onResult(hold)
if (what === 'runs') transport.onRun('default', hold)
if (what === 'close') {
  transport.handle('held', hold)
  process.on('message', () => void transport.close().then(() => process.disconnect()))
}
process.send?.('ready')
