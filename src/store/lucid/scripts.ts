/*
 * Transactions of MySQL that need no answer in between: hold a row, make sure that nothing is in the way,
 * write. MariaDB takes one as a single compound statement; MySQL has none and is sent its parts.
 */
import type { Binding } from '../../sql/dialect.ts'
import type { Row, Session } from '../../sql/session.ts'

/** A text with its parameters. */
export interface Statement {
  text: string
  bindings: Binding[]
}

export interface Script {
  /**
   * Reads one row under lock: `answers` by name, and `held`, whether to go on. `from` begins with FROM and
   * ends with the lock.
   */
  hold: { held: Statement; answers: Record<string, string>; from: Statement }
  /** Each reads, under lock, one number: 1 when nothing is in the way. FROM is part of the text. */
  clear: Statement[]
  writes: Statement[]
}

export type ScriptOutcome =
  /** The row that was held, or not; nothing was written. */
  | { held: false; row?: Row }
  /** Something was in the way, and nothing was written. */
  | { held: true; applied: false; row: Row }
  | { held: true; applied: true; row: Row }

export async function runScript(session: Session, script: Script): Promise<ScriptOutcome> {
  const { text, bindings } = compound(script)
  const row = await session.compound(text, bindings)
  if (!row) return runParts(session, script)
  if (Number(row.found) === 0) return { held: false }
  if (Number(row.held) !== 1) return { held: false, row }
  return { held: true, applied: Number(row.clear) === 1, row } as ScriptOutcome
}

function runParts(session: Session, { hold, clear, writes }: Script): Promise<ScriptOutcome> {
  const { held, answers, from } = hold
  const columns = Object.entries(answers).map(([name, expression]) => `${expression} AS ${name}`)
  return session.atomically(async (sql): Promise<ScriptOutcome> => {
    const [row] = await sql.adhoc(
      `SELECT ${[`${held.text} AS held`, ...columns].join(', ')} ${from.text}`,
      [...held.bindings, ...from.bindings]
    )
    if (!row || Number(row.held) !== 1) return { held: false, row }
    for (const { text, bindings } of clear) {
      const [answer] = await sql.adhoc(
        `SELECT ${text.replace(' FROM ', ' AS free FROM ')}`,
        bindings
      )
      if (Number(answer.free) !== 1) return { held: true, applied: false, row }
    }
    for (const { text, bindings } of writes) await sql.change(text, bindings)
    return { held: true, applied: true, row }
  })
}

/** Variables have names that no column has: they would hide it. */
function compound({ hold, clear, writes }: Script): Statement {
  const { held, answers, from } = hold
  const names = Object.keys(answers)
  const bindings: Binding[] = []
  const place = (statement: Statement) => {
    bindings.push(...statement.bindings)
    return statement.text
  }
  const into = (target: string, { text, bindings: values }: Statement) => {
    bindings.push(...values)
    return `SELECT ${text.replace(' FROM ', ` INTO ${target} FROM `)}`
  }
  const targets = ['v_found', 'v_held', ...names.map((name) => `v_${name}`)]
  const lines = [
    'BEGIN NOT ATOMIC',
    'DECLARE v_found, v_held INT DEFAULT 0;',
    'DECLARE v_clear INT DEFAULT 1;',
    ...names.map((name) => `DECLARE v_${name} LONGTEXT;`),
    'DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;',
    'SET TRANSACTION ISOLATION LEVEL READ COMMITTED;',
    'START TRANSACTION;',
    `SELECT ${['1', place(held), ...Object.values(answers)].join(', ')}`,
    `INTO ${targets.join(', ')} ${place(from)};`,
    ...clear.map((each) => `IF v_held = 1 AND v_clear = 1 THEN ${into('v_clear', each)}; END IF;`),
    'IF v_held = 1 AND v_clear = 1 THEN',
    ...(writes.length > 0 ? writes.map((each) => `${place(each)};`) : ['DO 0;']),
    'END IF;',
    'COMMIT;',
    `SELECT ${['found', 'held', 'clear', ...names].map((name) => `v_${name} AS ${name}`).join(', ')};`,
    'END',
  ]
  return { text: lines.join('\n'), bindings }
}
