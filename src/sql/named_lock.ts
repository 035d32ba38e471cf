/*
 * Named locks of MySQL and MariaDB. They belong to a connection, outlive its transactions and end with it;
 * they are known to the whole server, so the name says which database is meant.
 */
import type { Sql } from './session.ts'

/**
 * Runs `work` while the connection of `sql` holds a lock; `name` has at most 32 characters. `work` is told
 * whether the lock was there within so many seconds.
 */
export async function underName<T>(
  sql: Sql,
  name: string,
  seconds: number,
  work: (locked: boolean) => Promise<T>
): Promise<T> {
  const lock = `concat(?, left(sha1(database()), 32))`
  const [row] = await sql.run(`SELECT get_lock(${lock}, ?) AS locked`, [name, seconds])
  const locked = Number(row.locked) === 1
  try {
    return await work(locked)
  } finally {
    if (locked) await sql.run(`SELECT release_lock(${lock}) AS released`, [name])
  }
}
