/*
 * Names of the container bindings that are no classes. Their types are added to `ContainerBindings` by
 * providers/durable_provider.ts.
 */

/** The transport of the engine; the primary one when there are several. */
export const TRANSPORT = '@adonis-agora/durable:transport'

/** What looks at and steers runs, whatever the role of the process. */
export const RUN_GATEWAY = '@adonis-agora/durable:run-gateway'

/** What runs this process as one with a store: engine, loop, shutdown. Not for applications. */
export const STORE_ROLE = '@adonis-agora/durable:store-role'
