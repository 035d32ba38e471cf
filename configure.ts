/*
 * `node ace configure @adonis-agora/durable`.
 */
import type Configure from '@adonisjs/core/commands/configure'

export async function configure(_command: Configure): Promise<void> {}
