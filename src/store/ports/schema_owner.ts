/*
 * Role: provisioning. Optional.
 */
export interface SchemaOwner {
  /** Idempotent and additive. */
  ensureSchema(): Promise<void>
  /** Releases only what the store itself opened. */
  close(): Promise<void>
}
