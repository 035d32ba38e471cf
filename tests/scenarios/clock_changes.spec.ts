/*
 * A daily cron in a zone whose clocks change: a fleet that ticks, or comes back, around the change starts
 * one run for each day of the calendar.
 */
import { test } from '@japa/runner'
import { runSchedules } from '../../src/schedules/scheduler.ts'
import { storesUnderTest, useWorld, type World } from '../helpers/engines.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const ZONE = 'Europe/Berlin'
const NIGHTLY = { key: 'nightly', workflow: 'nightly', cron: '30 2 * * *', timezone: ZONE }

/** The days of a change with their neighbours: noon before, and noon after, in UTC. */
const CHANGES = {
  'the hour that is left out': {
    from: Date.UTC(2030, 2, 29, 11),
    to: Date.UTC(2030, 3, 1, 11),
    nights: ['2030-03-30 02:30', '2030-03-31 03:30', '2030-04-01 02:30'],
  },
  'the hour that comes twice': {
    from: Date.UTC(2030, 9, 25, 11),
    to: Date.UTC(2030, 9, 28, 11),
    nights: ['2030-10-26 02:30', '2030-10-27 02:30', '2030-10-28 02:30'],
  },
}

const format = new Intl.DateTimeFormat('sv-SE', {
  timeZone: ZONE,
  dateStyle: 'short',
  timeStyle: 'short',
})

/** When the runs were for, on a clock of the zone. */
const shown = (ids: string[]) => ids.map((id) => format.format(Number(id.split(':')[2]))).sort()

/** `ran` is told of every body that is executed. */
function engineIn(world: World, ran: string[]) {
  const engine = world.engine()
  engine.register('nightly', '1', async (ctx) => void ran.push(ctx.runId))
  return engine
}

async function nightsOf(world: World): Promise<string[]> {
  const runs = await world.store.listRuns({ workflow: 'nightly' })
  return shown(runs.map(({ id }) => id))
}

for (const kind of await storesUnderTest()) {
  test.group(`Clock changes | ${kind.name}`, (group) => {
    const world = useWorld(group, kind)

    for (const [what, { from, to, nights }] of Object.entries(CHANGES)) {
      test(`${what}: a daily cron starts one run a day across a fleet`, async ({ assert }) => {
        world.time.jump(from - world.time.now)
        const ran: string[] = []
        const fleet = [engineIn(world, ran), engineIn(world, ran)]
        for (let at = from + 7 * MINUTE; at < to; at += 20 * MINUTE) {
          world.time.jump(at - world.time.now)
          await Promise.all(fleet.map((engine) => runSchedules(engine, [NIGHTLY], at)))
          if (at % (6 * HOUR) < 20 * MINUTE) {
            // A deploy: whoever comes next knows only what the store knows.
            await world.quiet()
            await world.crash(fleet.shift()!)
            fleet.push(engineIn(world, ran))
          }
        }
        await world.quiet()
        const [before, ...during] = await nightsOf(world)
        assert.deepEqual(during, nights)
        assert.deepEqual(shown(ran), [before, ...nights])
      }).tags(['@scenario-12'])

      test(`${what}: a fleet that was down over it catches up with one run a day`, async ({
        assert,
      }) => {
        world.time.jump(to - world.time.now)
        const schedule = { ...NIGHTLY, backfill: { maxCatchup: 2 } }
        const ran: string[] = []
        const fleet = [engineIn(world, ran), engineIn(world, ran)]
        await Promise.all(fleet.map((engine) => runSchedules(engine, [schedule], to)))
        await world.quiet()
        assert.deepEqual(await nightsOf(world), nights)
        assert.deepEqual(shown(ran), nights)
      }).tags(['@scenario-12'])
    }
  })
}
