/*
 * A process that stands still: whoever has these timers renews nothing, and looks for nothing that lapsed.
 */
import { systemTimers, type Timers } from '../../src/foundation/clock.ts'

export const STANDING_STILL: Timers = { ...systemTimers, every: () => () => {} }
