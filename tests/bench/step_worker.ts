/*
 * A process that serves the step `remote` over a broker until its parent goes, and says when it does.
 */
import { openDatabase } from '../helpers/databases.ts'
import { type Broker, openBroker } from './brokers.ts'

const broker = JSON.parse(process.argv[2]) as Broker
const transport = await openBroker(broker, openDatabase(broker.location))
transport.handle?.('remote', (input) => input)
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
