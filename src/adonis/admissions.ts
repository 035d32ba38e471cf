/*
 * Who decides on the slots of flow-control queues. The queues of one process need nothing; what is shared
 * by several is built from the config when the engine is.
 */
import type { AdmissionBackend } from '../flow/port.ts'
import type { FactoryContext } from './factory_context.ts'

/** Builds an admission backend; called once per boot. */
export type AdmissionFactory = (
  context: FactoryContext
) => AdmissionBackend | Promise<AdmissionBackend>
