/*
 * Delivery of a payload and the deliverer's second look. Waiter, row and wake request change together, so
 * that neither a payload nor a waiter is ever only in a deliverer's memory (invariants 2, 5).
 */
import type { SignalDelivery, SignalOutcome } from '../ports/turn_commits.ts'
import { deliverOnPostgres, pairOnPostgres } from './deliveries_pg.ts'
import { deliverOnSqlite, pairOnSqlite } from './deliveries_sqlite.ts'
import type { Session } from './session.ts'

export function deliverSignal(session: Session, delivery: SignalDelivery): Promise<SignalOutcome> {
  return session.dialect.name === 'postgres'
    ? deliverOnPostgres(session, delivery)
    : deliverOnSqlite(session, delivery)
}

export function pairSignal(session: Session, token: string, nowMs: number): Promise<SignalOutcome> {
  return session.dialect.name === 'postgres'
    ? pairOnPostgres(session, token, nowMs)
    : pairOnSqlite(session, token, nowMs)
}
