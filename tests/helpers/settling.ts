/*
 * The moment just before the write that settles a turn, in whatever calls a store makes of it.
 */
import type { StoreGate } from './gated_store.ts'

/** Acts once, just before the write that settles a turn, of one run if it is named. */
export function beforeSettle(gate: StoreGate, act: () => Promise<unknown>, runId?: string): void {
  let acted = false
  const once = async (of: string, settles: boolean) => {
    if (!settles || acted || (runId !== undefined && of !== runId)) return
    acted = true
    await act()
  }
  gate.around('commitTurn', async (proceed, [commit]) => {
    const { runId: of, settle } = commit as { runId: string; settle?: unknown }
    await once(of, settle !== undefined)
    return proceed()
  })
  gate.around('updateRunIf', async (proceed, [of, , patch]) => {
    const { status } = patch as { status?: string }
    await once(of as string, status !== undefined && status !== 'running')
    return proceed()
  })
}
