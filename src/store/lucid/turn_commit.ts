/*
 * One commit of a turn. Everything is written under the lock of the run row, checked there against the
 * lease, the turn number and a live status (invariants 1, 3). A settled row is never replaced; whoever
 * loses to one is told what stands.
 */
import type { TurnCommit, TurnVerdict } from '../ports/turn_commits.ts'
import type { Session } from '../../sql/session.ts'
import { commitOnMysql } from './turn_commit_mysql.ts'
import { commitOnPostgres } from './turn_commit_pg.ts'
import { commitOnSqlite } from './turn_commit_sqlite.ts'

const COMMIT = { postgres: commitOnPostgres, sqlite: commitOnSqlite, mysql: commitOnMysql }

export function commitTurn(session: Session, commit: TurnCommit): Promise<TurnVerdict> {
  return COMMIT[session.dialect.name](session, commit)
}
