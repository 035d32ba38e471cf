/*
 * Windows of cron patterns, above all on the days on which clocks change. Every expectation is written by
 * hand, in UTC.
 */
import { test } from '@japa/runner'
import { CronCadence, cronParser, loadCronParser } from '../../src/schedules/cron.ts'
import type { Cadence } from '../../src/schedules/cadence.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const utc = (text: string) => Date.parse(`${text}Z`)
const shown = (at: number) => new Date(at).toISOString().slice(5, 16)

const cadence = async (pattern: string, zone = 'UTC') =>
  new CronCadence(await cronParser(), pattern, zone)

/** The windows of a stretch of time, as whoever ticks every `stepMs` sees them. */
function ticked(windows: Cadence, from: number, to: number, stepMs: number): string[] {
  const seen = new Set<number>()
  for (let now = from; now <= to; now += stepMs) {
    const window = windows.current(now)
    if (window && window.at > from) seen.add(window.at)
  }
  return [...seen].sort((a, b) => a - b).map(shown)
}

interface Day {
  pattern: string
  fires: string[]
}

/** The day before to the day after. */
interface Change {
  zone: string
  what: string
  from: string
  to: string
  days: Day[]
}

const CHANGES: Change[] = [
  {
    zone: 'Europe/Berlin',
    what: 'forward at 01:00 UTC',
    from: '2026-03-28T12:00',
    to: '2026-03-30T06:00',
    days: [
      { pattern: '30 2 * * *', fires: ['03-29T01:30', '03-30T00:30'] },
      { pattern: '0 2 * * *', fires: ['03-29T01:00', '03-30T00:00'] },
      { pattern: '0 3 * * *', fires: ['03-29T01:00', '03-30T01:00'] },
      { pattern: '0 2,3 * * *', fires: ['03-29T01:00', '03-30T00:00', '03-30T01:00'] },
    ],
  },
  {
    zone: 'Europe/Berlin',
    what: 'back at 01:00 UTC',
    from: '2026-10-24T12:00',
    to: '2026-10-26T06:00',
    days: [
      { pattern: '30 2 * * *', fires: ['10-25T00:30', '10-26T01:30'] },
      { pattern: '0 2 * * *', fires: ['10-25T00:00', '10-26T01:00'] },
      { pattern: '0 3 * * *', fires: ['10-25T02:00', '10-26T02:00'] },
    ],
  },
  {
    zone: 'America/New_York',
    what: 'forward at 07:00 UTC',
    from: '2026-03-07T12:00',
    to: '2026-03-09T10:00',
    days: [
      { pattern: '30 2 * * *', fires: ['03-08T07:30', '03-09T06:30'] },
      { pattern: '30 1 * * *', fires: ['03-08T06:30', '03-09T05:30'] },
    ],
  },
  {
    zone: 'America/New_York',
    what: 'back at 06:00 UTC',
    from: '2026-10-31T12:00',
    to: '2026-11-02T10:00',
    days: [
      { pattern: '30 1 * * *', fires: ['11-01T05:30', '11-02T06:30'] },
      { pattern: '30 2 * * *', fires: ['11-01T07:30', '11-02T07:30'] },
    ],
  },
  {
    zone: 'Australia/Lord_Howe',
    what: 'forward by half an hour at 15:30 UTC',
    from: '2026-10-03T04:00',
    to: '2026-10-04T23:00',
    days: [
      { pattern: '15 2 * * *', fires: ['10-03T15:45', '10-04T15:15'] },
      { pattern: '0 2 * * *', fires: ['10-03T15:30', '10-04T15:00'] },
      { pattern: '45 2 * * *', fires: ['10-03T15:45', '10-04T15:45'] },
    ],
  },
  {
    zone: 'Australia/Lord_Howe',
    what: 'back by half an hour at 15:00 UTC',
    from: '2026-04-04T04:00',
    to: '2026-04-05T23:00',
    days: [
      { pattern: '45 1 * * *', fires: ['04-04T14:45', '04-05T15:15'] },
      { pattern: '0 2 * * *', fires: ['04-04T15:30', '04-05T15:30'] },
      { pattern: '15 1 * * *', fires: ['04-04T14:15', '04-05T14:45'] },
    ],
  },
]

test.group('Cron | clocks change', (group) => {
  group.tap((one) => one.timeout(60_000))

  for (const { zone, what, from, to, days } of CHANGES) {
    for (const { pattern, fires } of days) {
      test(`${zone}, ${what}: "${pattern}" fires once a day`, async ({ assert }) => {
        const windows = await cadence(pattern, zone)
        assert.deepEqual(ticked(windows, utc(from), utc(to), HOUR / 12), fires)
      }).tags(['@scenario-12'])

      test(`${zone}, ${what}: "${pattern}" is the same for whoever asks at any time`, async ({
        assert,
      }) => {
        const all = fires.map((fire) => utc(`2026-${fire}`))
        for (let now = utc(from); now <= utc(to); now += HOUR / 2 + 7 * 60_000) {
          // A new one each time: what an earlier question left behind must not matter.
          const windows = await cadence(pattern, zone)
          const last = all.filter((at) => at <= now).at(-1)
          if (last !== undefined) assert.equal(shown(windows.current(now)!.at), shown(last))
          const next = all.find((at) => at > now)
          if (next !== undefined) assert.equal(shown(windows.nextAt(now)!), shown(next))
        }
      })
    }

    test(`${zone}, ${what}: a wildcard hour keeps real time`, async ({ assert }) => {
      const windows = await cadence('*/15 * * * *', zone)
      let now = utc(from)
      for (let n = 0; n < 40 * 4; n++) {
        const next = windows.nextAt(now)!
        assert.equal(next - now, HOUR / 4, shown(now))
        now = next
      }
    })
  }

  test('a day that a zone leaves out fires a day later', async ({ assert }) => {
    const windows = await cadence('0 12 30 12 *', 'Pacific/Apia')
    assert.equal(windows.nextAt(utc('2011-12-29T00:00')), utc('2011-12-30T22:00'))
  })
})

test.group('Cron | windows', () => {
  test('the current window is the last fire, an exact hit counts', async ({ assert }) => {
    const windows = await cadence('0 2 * * *')
    const at = utc('2026-05-04T02:00')
    assert.equal(windows.current(at - 1)!.at, at - DAY)
    assert.deepEqual(windows.current(at), { at, name: String(at) })
    assert.equal(windows.current(at + DAY - 1)!.at, at)
    assert.equal(windows.nextAt(at), at + DAY)
    assert.equal(windows.nextAt(at - 1), at)
  })

  test('earlier windows, oldest first', async ({ assert }) => {
    const windows = await cadence('0 0 1 * *')
    const current = windows.current(utc('2026-03-10T00:00'))!
    assert.deepEqual(
      windows.before(current, 3).map(({ at }) => shown(at)),
      ['12-01T00:00', '01-01T00:00', '02-01T00:00']
    )
    assert.deepEqual(windows.before(current, 0), [])
    assert.lengthOf(windows.before(current, 5), 5)
    const [february] = windows.before(current, 1)
    assert.deepEqual(windows.before(february, 1), [windows.current(utc('2026-01-05T00:00'))!])
  })

  test('none is before the epoch, and rare ones come to an end', async ({ assert }) => {
    const leap = await cadence('0 0 29 2 *')
    const all = leap.before(leap.current(utc('2030-01-15T08:30'))!, 1000)
    assert.equal(all[0].at, utc('1972-02-29T00:00'))
    assert.lengthOf(all, 14)
    const daily = await cadence('@daily')
    assert.deepEqual(daily.current(0), { at: 0, name: '0' })
    assert.deepEqual(daily.before(daily.current(2 * DAY)!, 1000), [
      { at: 0, name: '0' },
      { at: DAY, name: String(DAY) },
    ])
    assert.isUndefined(leap.current(utc('1972-02-28T00:00')))
  })

  test('many windows take a parse for each stretch of time, not for each window', async ({
    assert,
  }) => {
    const parse = await cronParser()
    let parsed = 0
    const counting: typeof parse = (...given) => {
      parsed += 1
      return parse(...given)
    }
    const windows = new CronCadence(counting, '* * * * * *', 'UTC')
    const before = windows.before(windows.current(utc('2026-03-10T00:00'))!, 1000)
    assert.lengthOf(before, 1000)
    assert.equal(before[0].at, utc('2026-03-09T23:43:20'))
    assert.isBelow(parsed, 20)
  })

  test('seconds, predefined patterns and rare days', async ({ assert }) => {
    const seconds = await cadence('*/10 * * * * *')
    assert.equal(seconds.current(utc('2026-01-01T00:00:25'))!.at, utc('2026-01-01T00:00:20'))
    const daily = await cadence('@daily')
    assert.equal(daily.current(utc('2026-01-01T05:00'))!.at, utc('2026-01-01T00:00'))
    const leap = await cadence('0 0 29 2 *')
    assert.equal(leap.current(utc('2027-01-01T00:00'))!.at, utc('2024-02-29T00:00'))
    assert.equal(leap.nextAt(utc('2027-01-01T00:00')), utc('2028-02-29T00:00'))
  })
})

test.group('Cron | the parser', () => {
  test('one that is not installed is named, with how to install it', async ({ assert }) => {
    const missing = Object.assign(new Error('Cannot find package'), {
      code: 'ERR_MODULE_NOT_FOUND',
    })
    const error = await loadCronParser(() => Promise.reject(missing)).catch((thrown) => thrown)
    assert.equal(error.code, 'missing_peer')
    assert.match(error.message, /"cron-parser"\. Install it with: npm i cron-parser/)
    assert.equal(error.cause, missing)
  }).tags(['@control-48'])

  test('another failure of the import is passed on', async ({ assert }) => {
    const broken = new Error('syntax')
    await assert.rejects(() => loadCronParser(() => Promise.reject(broken)), 'syntax')
  })

  test('fields as major 4 has them tell a wildcard hour', async ({ assert }) => {
    const parse = await cronParser()
    const lists: typeof parse = (pattern, options) => {
      const iterator = parse(pattern, options)
      const { values } = iterator.fields.hour as { values: readonly unknown[] }
      return { next: () => iterator.next(), fields: { hour: [...values] } }
    }
    const at = utc('2026-10-25T01:20')
    const wildcard = new CronCadence(lists, '*/15 * * * *', 'Europe/Berlin')
    assert.equal(wildcard.current(at)!.at, utc('2026-10-25T01:15'))
    const fixed = new CronCadence(lists, '30 2 * * *', 'Europe/Berlin')
    assert.equal(fixed.current(at)!.at, utc('2026-10-25T00:30'))
  })

  test('both majors are read, also behind a default export', async ({ assert }) => {
    const parse = () => ({ next: () => new Date(0), fields: { hour: [1] } })
    for (const module of [
      { parseExpression: parse },
      { default: { parseExpression: parse } },
      { CronExpressionParser: { parse } },
      { default: { default: { CronExpressionParser: { parse } } } },
    ]) {
      const loaded = await loadCronParser(async () => module)
      assert.equal(
        loaded('x', { currentDate: new Date(0), tz: 'UTC' })
          .next()
          .getTime(),
        0
      )
    }
    await assert.rejects(() => loadCronParser(async () => ({})), /cron-parser 4 or 5/)
  }).tags(['@control-48'])
})
