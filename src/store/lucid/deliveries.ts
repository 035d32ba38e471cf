/*
 * Delivery of a payload and the deliverer's second look. Waiter, row and wake request change together, so
 * that neither a payload nor a waiter is ever only in a deliverer's memory (invariants 2, 5).
 */
import type { SignalDelivery, SignalOutcome } from '../ports/turn_commits.ts'
import { deliverOnSqlite, pairLocked } from './deliveries_locked.ts'
import { deliverOnMysql } from './deliveries_mysql.ts'
import { deliverOnPostgres, pairOnPostgres } from './deliveries_pg.ts'
import type { Session } from '../../sql/session.ts'

const DELIVER = { postgres: deliverOnPostgres, sqlite: deliverOnSqlite, mysql: deliverOnMysql }
const PAIR = { postgres: pairOnPostgres, sqlite: pairLocked, mysql: pairLocked }

export function deliverSignal(session: Session, delivery: SignalDelivery): Promise<SignalOutcome> {
  return DELIVER[session.dialect.name](session, delivery)
}

export function pairSignal(session: Session, token: string, nowMs: number): Promise<SignalOutcome> {
  return PAIR[session.dialect.name](session, token, nowMs)
}
