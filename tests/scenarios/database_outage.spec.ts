/*
 * The database cannot be reached for half a minute, while timers, steps and schedules go on: connections are
 * cut in the middle of something and refused afterwards. Nobody helps; what was started ends, and what was
 * written under a transaction is there once.
 */
import { test } from '@japa/runner'
import type { TransactionClientContract } from '@adonisjs/lucid/types/database'
import type { WorkflowEngine } from '../../src/engine/workflow_engine.ts'
import { deferred } from '../../src/foundation/deferred.ts'
import { runWorkerLoop } from '../../src/loop/worker_loop.ts'
import { LucidStateStore } from '../../src/store/lucid/lucid_store.ts'
import { backendUrl } from '../helpers/backends.ts'
import {
  createDatabase,
  openDatabase,
  reachableDialects,
  type TestDatabase,
} from '../helpers/databases.ts'
import { World } from '../helpers/engines.ts'
import { TcpProxy } from '../helpers/tcp_proxy.ts'

const SECOND = 1000
const RUNS = 12
const EVERY = 10 * SECOND
const OUTAGE = 30 * SECOND
/** Until everybody has noticed, leases have lapsed and steps were sent again. */
const AFTERWARDS = 180 * SECOND

/** What a run is doing when the line is cut. */
const MOMENTS = [
  'nothing',
  'a local step',
  'a dispatched step',
  'a transaction',
  'the end of a transaction',
] as const
type Moment = (typeof MOMENTS)[number]
/** The run that is doing it: its sleep ends ten seconds after the start. */
const STRUCK = 5

interface Entry {
  run_id: string
  what: string
}

class Site {
  readonly #database: TestDatabase
  readonly line: TcpProxy
  readonly world: World
  /** Past the proxy. */
  readonly direct: LucidStateStore
  readonly #close: () => Promise<void>
  #moment: Moment = 'nothing'

  private constructor(database: TestDatabase, proxy: TcpProxy) {
    this.#database = database
    this.line = proxy
    const { location } = database
    const db = openDatabase({ ...location, target: proxy.urlOf(location.target) })
    this.world = new World(new LucidStateStore(db))
    this.direct = new LucidStateStore(database.db)
    this.#close = async () => {
      await this.world.close()
      await db.manager.closeAll()
      proxy.cut()
      await database.cleanup()
    }
  }

  static async open(dialect: 'postgres' | 'mysql'): Promise<Site> {
    const database = await createDatabase(dialect)
    const { hostname, port } = new URL(backendUrl(dialect))
    const standard = dialect === 'postgres' ? 5432 : 3306
    const proxy = await TcpProxy.to({ host: hostname, port: Number(port) || standard })
    const site = new Site(database, proxy)
    await site.direct.ensureSchema()
    await database.db.rawQuery('CREATE TABLE ledger (run_id varchar(255), what varchar(255))')
    return site
  }

  close(): Promise<void> {
    return this.#close()
  }

  cutIn(moment: Moment): void {
    this.#moment = moment
  }

  /** One that has a part in all of it, and its worker loop. */
  member(stopped: Promise<void>, errors: string[]) {
    const engine = this.world.engine()
    this.#register(engine)
    const loop = runWorkerLoop(engine, {
      intervalMs: SECOND,
      stopSignal: stopped,
      keepAlive: false,
      drainTimeoutMs: 0,
      logger: { info: () => {}, error: (line) => void errors.push(line) },
      schedules: [{ key: 'report', workflow: 'report', everyMs: EVERY }],
      sleep: (ms) => new Promise((resolve) => void this.world.time.after(ms, () => resolve(null))),
    })
    return { engine, loop }
  }

  async ledger(): Promise<string[]> {
    const rows: Entry[] = await this.#database.db.from('ledger').select('run_id', 'what')
    return rows.map(({ run_id: id, what }) => `${id} ${what}`).sort()
  }

  #register(engine: WorkflowEngine): void {
    const book = (runId: string, what: string) => async (raw: unknown) => {
      const trx = raw as TransactionClientContract
      await trx.table('ledger').insert({ run_id: runId, what })
      if (runId !== `r${STRUCK}` || what !== 'second') return
      this.#strike('a transaction')
      setImmediate(() => this.#strike('the end of a transaction'))
    }
    engine.handle('remote', async (n) => {
      if (n === STRUCK) this.#strike('a dispatched step')
      return Number(n) * 10
    })
    engine.register('report', '1', async (ctx) => {
      await ctx.transaction('report', book(ctx.runId, 'report'))
    })
    engine.register('journey', '1', async (ctx, n: number) => {
      await ctx.transaction('first', book(ctx.runId, 'first'))
      await ctx.sleep(n * 2 * SECOND)
      await ctx.localStep('local', () => {
        if (n === STRUCK) this.#strike('a local step')
      })
      const remote = await ctx.step<number>('remote', n)
      await ctx.transaction('second', book(ctx.runId, 'second'))
      const word = await ctx.waitForSignal<string>(`word:${n}`, { timeoutMs: 25 * SECOND }).catch(() => 'none') // prettier-ignore
      return [remote, word]
    })
  }

  #strike(moment: Moment): void {
    if (this.#moment !== moment) return
    this.#moment = 'nothing'
    this.line.cut()
  }
}

for (const dialect of await reachableDialects()) {
  if (dialect === 'sqlite') continue
  test.group(`Database outage | ${dialect}`, () => {
    for (const moment of MOMENTS) {
      test(`cut in ${moment}: everything goes on by itself, nothing is lost or doubled`, async ({
        assert,
        cleanup,
      }) => {
        const site = await Site.open(dialect)
        cleanup(() => site.close())
        const { world, direct } = site
        const [astray, errors]: [unknown[], string[]] = [[], []]
        const hear = (error: unknown) => void astray.push(error)
        process.on('unhandledRejection', hear)
        cleanup(() => void process.off('unhandledRejection', hear))
        const stop = deferred<void>()
        const members = [site.member(stop.promise, errors), site.member(stop.promise, errors)]
        const ids = Array.from({ length: RUNS }, (_, n) => `r${n}`)
        for (const [n, id] of ids.entries()) await members[n % 2].engine.start('journey', n, id)
        const begun = world.time.now
        await world.time.advance(5 * SECOND)
        for (const n of [0, 1]) await members[0].engine.signal(`word:${n}`, 'heard')

        site.cutIn(moment)
        await world.time.advance(7 * SECOND)
        if (moment === 'nothing') site.line.cut()
        assert.isTrue(site.line.isCut, 'the moment came')
        errors.length = 0
        await world.time.advance(OUTAGE)
        assert.isNotEmpty(errors)
        await site.line.mend()
        const mended = world.time.now
        await world.time.advance(60 * SECOND)
        errors.length = 0
        await world.time.advance(AFTERWARDS - 60 * SECOND)
        stop.resolve()
        await Promise.all(members.map(({ loop }) => loop))
        await world.quiet()

        assert.deepEqual(errors, [])
        assert.deepEqual(astray, [])
        const runs = await Promise.all(ids.map((id) => direct.getRun(id)))
        assert.deepEqual(
          runs.map((run) => run?.output),
          ids.map((_, n) => [n * 10, n < 2 ? 'heard' : 'none'])
        )
        const every = await direct.listRuns({})
        const reports = every.filter(({ workflow }) => workflow === 'report').map(({ id }) => id)
        assert.deepEqual([...new Set(every.map(({ status }) => status))], ['completed'])
        assert.deepEqual(every.filter(({ lockedBy }) => lockedBy !== undefined), []) // prettier-ignore
        assert.deepEqual(
          await site.ledger(),
          [
            ...ids.flatMap((id) => [`${id} first`, `${id} second`]),
            ...reports.map((id) => `${id} report`),
          ].sort()
        )
        const windows = new Set(reports)
        for (let at = mended + EVERY; at <= world.time.now - EVERY; at += EVERY) {
          assert.isTrue(windows.has(`sched:report:${Math.floor(at / EVERY)}`), `window at ${at}`)
        }
        assert.isTrue(windows.has(`sched:report:${Math.floor(begun / EVERY)}`))
      })
        .tags(['@scenario-5'])
        .timeout(120_000)
    }
  })
}
