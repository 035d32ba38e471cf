/*
 * MariaDB: ANALYZE FORMAT=JSON, which runs the statement and counts. Index entries that were looked at and
 * passed over come from the counters of the session.
 */
import type { Send, Sent } from './capture.ts'
import {
  aliasesOf,
  isJson,
  type Json,
  newPlan,
  objectsIn,
  type Plan,
  shortName,
} from './explain.ts'

export async function explainMysql(send: Send, sent: Sent): Promise<Plan> {
  const before = await passedOver(send)
  const [[row]] = (await send(`ANALYZE FORMAT=JSON ${sent.sql}`, sent.bindings)) as [Json[]]
  const answer: unknown = JSON.parse(withoutConditions(String(row.ANALYZE)))
  const plan = newPlan()
  plan.read += (await passedOver(send)) - before
  const aliases = aliasesOf(sent)
  for (const node of objectsIn(answer)) {
    const table = aliases.get(String(node.table_name))
    if (table === undefined) continue
    if (node.access_type === 'ALL') plan.scans.push(table)
    for (const key of keysOf(node)) plan.indexes = [...new Set([...plan.indexes, shortName(key)])]
    plan.read += Math.round(Number(node.r_rows ?? 0) * Number(node.r_loops ?? 1))
  }
  if (isJson(answer) && isJson(answer.query_block))
    plan.ms = Number(answer.query_block.r_total_time_ms ?? 0)
  return plan
}

function keysOf(node: Json): string[] {
  if (typeof node.key === 'string') return [node.key]
  const merged = isJson(node.index_merge) ? [...objectsIn(node.index_merge)] : []
  return merged.flatMap(({ key }) => (typeof key === 'string' ? [key] : []))
}

async function passedOver(send: Send): Promise<number> {
  const [rows] = (await send(`SHOW SESSION STATUS LIKE 'Handler_icp%'`)) as [Json[]]
  const values = new Map(rows.map((row) => [String(row.Variable_name), Number(row.Value)]))
  return (values.get('Handler_icp_attempts') ?? 0) - (values.get('Handler_icp_match') ?? 0)
}

/** MariaDB does not escape the quotes of their texts. */
const withoutConditions = (json: string): string =>
  json.replace(/("\w*condition\w*": ").*("[\]}]?,?)$/gm, '$1$2')
