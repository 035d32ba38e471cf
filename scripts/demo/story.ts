/*
 * The story of the demo, from a fresh checkout to a verdict. Ends the process with 0 or 1. Steps are
 * dispatched over `--transport=eventEmitter`, the default, or another one of transport.ts.
 */
import { Client } from './client.ts'
import { CommandError, stopCommands } from './commands.ts'
import { judge } from './judge.ts'
import { ALL, APPROVED, BEFORE_THE_KILL, KILLED, PLAIN } from './orders.ts'
import { build, installIntoShop, isBuildStale } from './package.ts'
import { say, seconds, until } from './progress.ts'
import type { JournalLine, Report } from './report.ts'
import { type ShopProcess, Stage } from './stage.ts'
import { historyTable, ledgerTable } from './tables.ts'
import { DemoTransport } from './transport.ts'

const FIRST = 'worker 1'
const SECOND = 'worker 2'

/** For one thing to happen; on an idle machine everything happens within seconds. */
const PATIENCE_MS = 45_000

const transport = chosenTransport()
const stage = new Stage(transport)
process.on('exit', () => {
  stopCommands()
  stage.close()
})
process.on('SIGINT', () => void leave(130))
process.on('SIGTERM', () => void leave(143))

let leaving = false

try {
  await transport.check()
  const right = await play()
  process.exitCode = right ? 0 : 1
} catch (error) {
  if (!leaving) tell(error as Error)
} finally {
  await cleanUp()
}

function tell(error: Error): void {
  if (error instanceof CommandError) console.error(`\n${error.output}`)
  console.error(`\n${stage.tails()}\nThe demo failed: ${error.message}`)
  process.exitCode = 1
}

function chosenTransport(): DemoTransport {
  try {
    return new DemoTransport(process.argv.slice(2))
  } catch (error) {
    console.error(`The demo cannot begin: ${(error as Error).message}`)
    process.exit(1)
  }
}

/** What is interrupted leaves nothing behind either. */
async function leave(code: number): Promise<void> {
  leaving = true
  process.exitCode = code
  await cleanUp()
  process.exit(code)
}

async function cleanUp(): Promise<void> {
  stopCommands()
  stage.close()
  // A Redis that is gone keeps nothing that could be removed now.
  await transport.clear().catch(() => {})
}

/** Answers whether everything is right. */
async function play(): Promise<boolean> {
  await prepare()
  await stage.open()
  const shop = new Client(stage)

  say(`migrating the database; steps are dispatched over ${transport.title}`)
  await stage.ace('migration:run')
  const web = stage.startWeb()
  const first = stage.startWorker(FIRST)
  say(`starting the shop at ${stage.url} (pid ${web.pid}) and ${FIRST} (pid ${first.pid})`)
  await settled('the shop answers', () => shop.isUp())

  for (const { input, what } of BEFORE_THE_KILL) {
    await shop.placeOrder(input)
    say(`ordered ${input.id}: ${what}`)
  }
  await shop.placeOrder(PLAIN.input)
  say(`ordered ${PLAIN.input.id} again: it must stay one order`)
  await settled('every run is at its end or waits', async () => isQuiet(await shop.report()))
  say('every run is at its end, asleep, or waits for its approval')

  await shop.placeOrder(KILLED.input)
  say(`ordered ${KILLED.input.id}: ${KILLED.what}`)
  await settled('the gift is being wrapped', () => isNoted(shop, 'begin'))
  say(`killed ${FIRST} with ${await first.end('SIGKILL')} while it wraps ${KILLED.input.id}`)
  if (isNoted(shop, 'end')) throw new Error(`${FIRST} was killed too late: the gift was wrapped`)

  const second = stage.startWorker(SECOND)
  say(`starting ${SECOND} (pid ${second.pid})`)
  await shop.approve(APPROVED.input.id, 'ada')
  say(`approved ${APPROVED.input.id} over HTTP`)
  await untilAllEnded(shop)

  const report = await shop.report()
  await endsWell(second)
  await endsWell(web)
  return verdict(report, shop.journal())
}

async function prepare(): Promise<void> {
  if (isBuildStale()) {
    say('building the package')
    await build()
  }
  say('installing the package into examples/shop')
  const files = await installIntoShop()
  say(`installed its ${files} files`)
}

/** Every run is at its end, or suspended on a deadline: that of a sleep, or of a bounded wait. */
function isQuiet({ orders }: Report): boolean {
  return orders.every(({ run, steps }) =>
    run?.status === 'suspended' ? steps.at(-1)?.kind === 'sleep' : isEnd(run?.status)
  )
}

function isEnd(status: string | undefined): boolean {
  return ['completed', 'failed', 'cancelled', 'dead'].includes(status ?? '')
}

function isNoted(shop: Client, event: JournalLine['event']): boolean {
  const body = KILLED.history.find(({ killed }) => killed)?.body
  return shop.journal().some((line) => line.body === body && line.event === event)
}

async function untilAllEnded(shop: Client): Promise<void> {
  const told = new Set<string>()
  await settled('every run is at its end', async () => {
    const { orders } = await shop.report()
    const ended = orders.filter(({ run }) => isEnd(run?.status))
    for (const { id, run, status } of ended) {
      if (!told.has(id)) say(`${id} is ${status} (run ${run?.status})`)
      told.add(id)
    }
    return ended.length === ALL.length
  })
}

async function endsWell(one: ShopProcess): Promise<void> {
  const how = await one.end('SIGTERM')
  if (how !== 0) throw new Error(`${one.name} ended with ${how} when it was told to stop`)
  say(`${one.name} has drained and ended`)
}

function settled(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const watched = () => {
    stage.checkAlive()
    return holds()
  }
  return until(what, watched, PATIENCE_MS)
}

/** Shows what became of the orders; true when everything is right. */
function verdict(report: Report, journal: JournalLine[]): boolean {
  console.log(`\n${historyTable(ALL, report, journal)}\n\n${ledgerTable(ALL, report)}\n`)
  const wrong = judge(ALL, { report, journal, killed: FIRST, survivor: SECOND })
  for (const sentence of wrong) console.log(`WRONG  ${sentence}`)
  if (wrong.length > 0) {
    console.log(
      `The demo failed: ${wrong.length} ${wrong.length === 1 ? 'thing is' : 'things are'} wrong.`
    )
    return false
  }
  console.log(
    `All ${ALL.length} orders are right: every charge was booked once, the declined one was refunded ` +
      `once,\nand no body ran twice but the one that was killed. It took ${seconds()} seconds.`
  )
  return true
}
