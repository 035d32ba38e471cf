/*
 * What the demo shows in the end.
 */
import type { Expected } from './orders.ts'
import { chronological, executionsOf, type JournalLine, type Report } from './report.ts'

/** Every order with its history, and how often and where the body of each step ran. */
export function historyTable(orders: Expected[], report: Report, journal: JournalLine[]): string {
  const rows = [['ORDER', 'STEP', 'STATUS', 'BODY RAN']]
  for (const { input, what, history } of orders) {
    const found = report.orders.find(({ id }) => id === input.id)
    if (!found) continue
    rows.push([input.id, what, found.run?.status ?? 'no run', found.run?.error ?? ''])
    for (const { name, status } of chronological(found.steps)) {
      const body = history.find((step) => step.name === name)?.body
      const ran = body ? executionsOf(journal, input.id, body) : []
      rows.push(['', `  ${name}`, status, body ? `${ran.length}x  ${ran.join(', ')}` : ''])
    }
  }
  return columns(rows)
}

/** What every order was charged and given back, and with how many entries. */
export function ledgerTable(orders: Expected[], report: Report): string {
  const rows = [['ORDER', 'CHARGED', 'REFUNDED']]
  for (const { input } of orders) {
    const ledger = report.orders.find(({ id }) => id === input.id)?.ledger ?? []
    const sums = ['charge', 'refund'].map((kind) => {
      const entries = ledger.filter((entry) => entry.kind === kind)
      const cents = entries.reduce((sum, entry) => sum + entry.cents, 0)
      return entries.length > 0 ? `${entries.length}x  ${(cents / 100).toFixed(2)}` : '-'
    })
    rows.push([input.id, ...sums])
  }
  return columns(rows)
}

function columns(rows: string[][]): string {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  return rows
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column])).join('  '))
    .map((line) => line.trimEnd())
    .join('\n')
}
