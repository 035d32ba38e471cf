/*
 * Where things are, whatever the working directory is.
 */
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')
export const SHOP = join(ROOT, 'examples/shop')
