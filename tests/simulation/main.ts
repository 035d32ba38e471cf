import { simulate } from './world.ts'
const seeds = Number(process.env.SEEDS ?? 100)
const start = Number(process.argv.find((a) => a.startsWith('--start='))?.slice(8) ?? 1)
const one = process.env.SEED
if (one) {
  const trace: string[] = []
  const r = await simulate({ seed: Number(one), trace })
  console.log(JSON.stringify(r.program))
  console.log(trace.join('\n'))
  console.log(r.failures, r.stats)
} else {
  const t0 = Date.now()
  const kinds: Record<string, string[]> = {}
  let bad = 0
  const st: Record<string, number> = {}
  let events = 0
  for (let seed = start; seed < start + seeds; seed++) {
    const r = await simulate({ seed })
    events += r.stats.events
    for (const s of r.stats.statuses) st[s] = (st[s] ?? 0) + 1
    if (r.failures.size) bad++
    for (const [k, v] of r.failures) (kinds[k] ??= []).push(`${seed}: ${v.slice(0, 300)}`)
  }
  for (const [k, v] of Object.entries(kinds)) {
    console.log(k, v.length)
    for (const x of v.slice(0, 3)) console.log('   ', x)
  }
  console.log(st, events, (Date.now() - t0) / 1000)
  console.log(`${seeds - bad} passed, ${bad} failed`)
}
