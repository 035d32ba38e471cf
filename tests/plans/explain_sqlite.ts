/*
 * SQLite: EXPLAIN QUERY PLAN, and a count of the rows it looks at. SQLite does not tell that, so a function
 * that counts stands as the first condition on every durable table; the plan must stay the same with it.
 */
import type { Send, Sent } from './capture.ts'
import { aliasesOf, isDurable, type Json, newPlan, type Plan, shortName } from './explain.ts'

interface Connection {
  function(name: string, options: object, implementation: () => number): unknown
  prepare(text: string): {
    reader: boolean
    all(bindings: readonly unknown[]): unknown[]
    run(bindings: readonly unknown[]): unknown
  }
}

export class SqliteExplainer {
  readonly #connection: Connection
  #seen = 0

  constructor(connection: object) {
    this.#connection = connection as Connection
    this.#connection.function('seen', { varargs: true }, () => {
      this.#seen += 1
      return 1
    })
  }

  async explain(send: Send, sent: Sent): Promise<Plan> {
    const steps = await this.#steps(send, sent.sql, sent.bindings)
    const counting = withCounting(sent)
    const plan = newPlan()
    const same = await this.#steps(send, counting, sent.bindings)
    if (same.join('\n') !== steps.join('\n')) {
      throw new Error(
        `counting changes the plan of\n${sent.sql}\n${steps.join('\n')}\nto\n${same.join('\n')}`
      )
    }
    this.#seen = 0
    const startedAt = performance.now()
    const statement = this.#connection.prepare(counting)
    if (statement.reader) statement.all(sent.bindings)
    else statement.run(sent.bindings)
    plan.ms = performance.now() - startedAt
    plan.read = this.#seen
    const aliases = aliasesOf(sent)
    for (const step of steps) {
      const [, verb, name, using] = /^(SCAN|SEARCH) (\w+)(?: USING (.*))?$/.exec(step) ?? []
      const table = aliases.get(name)
      if (verb === undefined || table === undefined) continue
      const index = /INDEX (\w+)/.exec(using ?? '')?.[1] ?? (using ? 'PRIMARY' : undefined)
      if (index === undefined) plan.scans.push(table)
      else plan.indexes = [...new Set([...plan.indexes, shortName(index)])]
    }
    return plan
  }

  async #steps(send: Send, text: string, bindings: readonly unknown[]): Promise<string[]> {
    const rows = (await send(`EXPLAIN QUERY PLAN ${text}`, bindings)) as Json[]
    return rows.map(({ detail }) => String(detail))
  }
}

/** After each durable table a condition that counts; alone in its FROM, joined or written. */
function withCounting({ sql }: Sent): string {
  const joined = sql.replace(
    /\bFROM\s+(durable_\w+)\s+(\w+)\s+CROSS JOIN\s+durable_\w+\s+\w+\s+ON\b/g,
    (found, _table, alias) => `${found} seen(${alias}.rowid) AND`
  )
  const reads = joined.replace(
    /(DELETE\s+)?\b(FROM|JOIN)(\s+)(durable_\w+)(?:\s+(?!WHERE|ON|INDEXED)(\w+))?(\s+(?:INDEXED BY \w+\s+)?)(WHERE|ON)\b/g,
    (found, remove, word, space, table, alias, gap, condition) => {
      if (remove || !isDurable(table)) return found
      const name = alias === undefined ? table : `${table} ${alias}`
      return `${word}${space}${name}${gap}${condition} seen(${alias ?? table}.rowid) AND`
    }
  )
  const written = /(?:UPDATE|DELETE FROM)\s+(durable_\w+)(?:\s+AS\s+(\w+))?/.exec(reads)
  if (!written) return reads
  const from = written.index + written[0].length
  const where = from + topLevelWhere(reads.slice(from))
  const name = written[2] ?? written[1]
  return `${reads.slice(0, where)} WHERE seen(${name}.rowid) AND ${reads.slice(where + 'WHERE'.length)}`
}

function topLevelWhere(text: string): number {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(') depth += 1
    else if (text[at] === ')') depth -= 1
    else if (depth === 0 && /^WHERE\b/.test(text.slice(at, at + 6))) return at
  }
  throw new Error(`no condition in ${text}`)
}
