/*
 * Role: wake hints between processes. Ours, optional. A hint may be lost; the poll is the truth
 * (invariant 9).
 */
export interface WakeHint {
  namespace: string
  runIds: string[]
}

export interface WakeHints {
  notifyWake(hint: WakeHint): Promise<void>
  /** Calls back for hints of any process; answers how to stop. */
  onWake(listener: (hint: WakeHint) => void): Promise<() => Promise<void>>
}
