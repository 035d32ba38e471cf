/*
 * Postgres: EXPLAIN ANALYZE, with the values as the planner first sees them and, for statements whose plan the
 * server keeps, with the plan it makes for any values.
 */
import type { Send, Sent } from './capture.ts'
import {
  isDurable,
  isJson,
  type Json,
  newPlan,
  objectsIn,
  type Plan,
  shortName,
} from './explain.ts'

const OPTIONS = 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)'
/** Pages a row may cost: its own, and the way to it. */
const PAGES = 12
const PAGES_ANYWAY = 200
/** A table of so many rows is read faster as a whole. */
const SMALL = 2500

export async function explainPg(send: Send, sent: Sent, generic: boolean): Promise<Plan> {
  if (!generic) return read(await send(`${OPTIONS} ${sent.sql}`, sent.bindings))
  await send('SET LOCAL plan_cache_mode = force_generic_plan')
  await send(`PREPARE hot AS ${sent.sql}`)
  try {
    const values = sent.bindings.map(literal).join(', ')
    return read(await send(`${OPTIONS} EXECUTE hot${values && ` (${values})`}`))
  } finally {
    await send('DEALLOCATE hot')
  }
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'number') return String(value)
  const text = Array.isArray(value)
    ? `{${value.map((each) => JSON.stringify(String(each))).join(',')}}`
    : String(value)
  return `'${text.replaceAll("'", "''")}'`
}

function read(response: unknown): Plan {
  const plan = newPlan()
  for (const node of objectsIn(isJson(response) ? response.rows : undefined)) {
    if (node['Node Type'] !== undefined) addNode(plan, node)
    if (typeof node['Execution Time'] === 'number') plan.ms += node['Execution Time']
  }
  const [top] = [...objectsIn(isJson(response) ? response.rows : undefined)].filter(
    (node) => node['Node Type'] !== undefined
  )
  const pages = count(top, 'Shared Hit Blocks') + count(top, 'Shared Read Blocks')
  // Entries that an index passes over are counted nowhere else. A write touches pages of every index.
  if (top?.['Node Type'] !== 'ModifyTable' && pages > PAGES * plan.read + PAGES_ANYWAY)
    plan.scans.push(`${pages} pages`)
  return plan
}

const count = (node: Json | undefined, key: string): number => Number(node?.[key] ?? 0)

function addNode(plan: Plan, node: Json): void {
  const type = String(node['Node Type'])
  const index = node['Index Name']
  if (typeof index === 'string') plan.indexes = [...new Set([...plan.indexes, shortName(index)])]
  const isScan = /^(Seq Scan|Index Scan|Index Only Scan|Bitmap Heap Scan)$/.test(type)
  if (!isScan || !isDurable(node['Relation Name'])) return
  const rows =
    count(node, 'Actual Rows') +
    count(node, 'Rows Removed by Filter') +
    count(node, 'Rows Removed by Index Recheck')
  if (type === 'Seq Scan') {
    if (rows < SMALL) return
    plan.scans.push(node['Relation Name'])
  }
  plan.read += Math.round(rows * count(node, 'Actual Loops'))
}
