/*
 * Transactions that user code takes part in. The handle is Lucid's own; the checkpoint is written through
 * it. The run row is locked only when the checkpoint is written: a lock taken at the beginning would hold
 * up renewals, wakes and cancels for as long as user code runs.
 */
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import type { StepCheckpoint } from '../../types/checkpoint.ts'
import { LeaseLostError, TransactionSpoiledError } from '../../errors.ts'
import type { LeaseFence, StoreTransaction } from '../ports/transactions.ts'
import { saveCheckpoint, saveUnderLease } from './checkpoints.ts'
import { bestEffort, messageOf } from '../../foundation/failure.ts'
import { codeOf } from '../../sql/dialect.ts'
import { DURABLE_TABLES as T } from './schema/tables.ts'
import { asStoreError, type Session, type Sql } from '../../sql/session.ts'

export async function transaction<T>(
  session: Session,
  work: (tx: StoreTransaction) => Promise<T>
): Promise<T> {
  const trx = await begin(session)
  let result: T
  try {
    await takeWriteLock(session, trx)
    result = await work(handle(session, trx))
  } catch (error) {
    const gone = await undo(session, trx)
    throw gone === undefined ? error : asStoreError(gone)
  }
  await commit(session, trx)
  return result
}

/**
 * Answers why it could not be rolled back: an outage, of which the failure of the work is only a part. A
 * transaction that user code has ended, or that SQLite has, has nothing left to roll back.
 */
async function undo(session: Session, trx: TransactionClientContract): Promise<unknown> {
  const gone = trx.isCompleted ? undefined : await session.rollback(trx)
  await bestEffort('a connection that is gone took its transaction along', trx.rollback())
  return session.dialect.name === 'sqlite' ? undefined : gone
}

async function begin(session: Session): Promise<TransactionClientContract> {
  try {
    const trx = await session.lucid().transaction()
    await session.assertBegun(trx)
    return trx
  } catch (error) {
    throw asStoreError(error)
  }
}

/** Lucid ends a transaction well whatever became of its COMMIT: asked afterwards, it only tells listeners. */
async function commit(session: Session, trx: TransactionClientContract): Promise<void> {
  try {
    await session.commit(trx)
  } catch (error) {
    await bestEffort('it has ended', trx.rollback())
    if (!session.dialect.refusesData(error)) throw asStoreError(error)
    throw new TransactionSpoiledError(
      error,
      `the database refused to commit the transaction: ${messageOf(error)}`
    )
  }
  await trx.commit()
}

/** A SQLite transaction that reads first cannot write once somebody else wrote. */
async function takeWriteLock(session: Session, trx: TransactionClientContract): Promise<void> {
  if (session.dialect.name !== 'sqlite') return
  await session.within(trx, (sql) => sql.run(`UPDATE ${T.runs} SET turns = turns WHERE 1 = 0`, []))
}

/** Postgres refuses every statement after one that failed. */
const GIVEN_UP = '25P02'

const ENDED =
  'the transaction was committed or rolled back by user code: its record could not be part of it. ' +
  'Return to commit, throw to roll back.'

/** MySQL undoes a whole transaction on a deadlock and takes what follows as statements of their own. */
async function assertOpen(sql: Sql): Promise<void> {
  if (sql.dialect.name !== 'mysql') return
  const { inTransaction } = await sql.change(`UPDATE ${T.runs} SET turns = turns WHERE 1 = 0`, [])
  if (!inTransaction) throw new TransactionSpoiledError()
}

const handle = (session: Session, trx: TransactionClientContract): StoreTransaction => ({
  raw: trx,
  async saveCheckpoint(checkpoint: StepCheckpoint, fence?: LeaseFence) {
    if (trx.isCompleted) throw new TransactionSpoiledError(undefined, ENDED)
    const save = async (sql: Sql) => {
      if (!fence) {
        await assertOpen(sql)
        return saveCheckpoint(sql, checkpoint)
      }
      if (await saveUnderLease(sql, checkpoint, fence)) return
      throw new LeaseLostError(checkpoint.runId, fence.owner)
    }
    try {
      await session.within(trx, save)
    } catch (error) {
      const { cause } = error as Error
      throw codeOf(cause) === GIVEN_UP ? new TransactionSpoiledError(cause) : error
    }
  },
})
