import { test } from '@japa/runner'
import { differenceOf } from '../../src/testing/difference.ts'
import { Ledger } from '../../src/testing/explore/ledger.ts'
import { linesOf, timelineDiff } from '../../src/testing/explore/timeline.ts'
import { VirtualTime } from '../../src/testing/explore/virtual_time.ts'
import { local, remote, RUN } from '../replay/machine.ts'

test.group('exploration | ledger', () => {
  const place = { runId: RUN, seq: 0, name: 'pay' }
  const once = async () => {
    const ledger = new Ledger()
    await ledger.execute(place, () => 'first')
    return ledger
  }

  test('an execution whose result was not durable may be repeated', async ({ assert }) => {
    const first = await once()
    const ledger = new Ledger(first)
    await ledger.execute(place, () => 1)
    ledger.died([])
    await ledger.execute(place, () => 2)
    assert.deepEqual(ledger.excessOver(first), [])
  })

  test('one whose result was durable may not', async ({ assert }) => {
    const first = await once()
    const ledger = new Ledger(first)
    await ledger.execute(place, () => 1)
    ledger.died([local(0, 'pay')])
    await ledger.execute(place, () => 2)
    assert.deepEqual(ledger.excessOver(first), [
      { runId: RUN, what: 'body', step: 'pay', times: 2, allowed: 1 },
    ])
  })

  test('what a place answered first it answers always', async ({ assert }) => {
    const first = await once()
    const ledger = new Ledger(first)
    assert.equal(await ledger.execute(place, () => 'second'), 'first')
    assert.equal(await ledger.execute({ ...place, seq: 1 }, () => 'moved'), 'first')
    assert.equal(await ledger.execute({ ...place, name: 'new' }, () => 'other'), 'other')
    assert.equal(ledger.novel, 1)
    await assert.rejects(
      () =>
        ledger.execute(place, () => {
          throw new Error('no')
        }),
      'no'
    )
  })
})

test.group('exploration | time', () => {
  test('it jumps from alarm to alarm, and what repeats is made up for', async ({ assert }) => {
    const time = new VirtualTime()
    const timers = time.process()
    const begin = time.clock()
    const fired: [string, number][] = []
    const note = (what: string) => () => void fired.push([what, time.clock() - begin])
    timers.every(10, note('beat'))
    timers.after(25, note('late'))
    timers.after(5, note('early'))
    timers.after(7, note('never'))()
    assert.equal(time.nextAlarm(), begin + 5)
    await time.jumpTo(begin + 30, async () => {})
    assert.deepEqual(fired, [
      ['early', 5],
      ['beat', 10],
      ['beat', 20],
      ['late', 25],
      ['beat', 30],
    ])
    assert.isUndefined(time.nextAlarm())
    await time.jumpTo(begin + 1_000_000, async () => {})
    assert.isBelow(fired.length, 30)
  })

  test('a dead process has no timers', async ({ assert }) => {
    const time = new VirtualTime()
    const timers = time.process()
    timers.after(5, () => assert.fail('fired'))
    timers.die()
    timers.after(5, () => assert.fail('set'))
    await time.jumpTo(time.clock() + 10, async () => {})
    assert.isUndefined(time.nextAlarm())
  })
})

test.group('exploration | differences', () => {
  test('the first difference of two values, by path', ({ assert }) => {
    assert.isUndefined(differenceOf({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }))
    assert.deepEqual(differenceOf({ a: [1, { b: 2 }] }, { a: [1, { b: 3 }] }), {
      path: '.a[1].b',
      expected: 2,
      actual: 3,
    })
    assert.equal(differenceOf({ 'a-b': 1 }, {})?.path, '["a-b"]')
    assert.equal(differenceOf([1], [1, 2])?.path, '[1]')
    assert.equal(differenceOf([], {})?.path, '')
  })

  test('the lines around the first difference of two histories', ({ assert }) => {
    const expected = [0, 1, 2, 3, 4, 5].map((seq) => local(seq, `s${seq}`))
    const actual = [...expected.slice(0, 3), remote(3, 's3'), ...expected.slice(4, 5)]
    assert.isUndefined(timelineDiff(expected, expected))
    assert.deepEqual(timelineDiff(expected, actual)?.split('\n'), [
      '  …',
      '     1  s1 (local) completed',
      '     2  s2 (local) completed',
      '-    3  s3 (local) completed',
      '+    3  s3 (remote) completed',
      '     4  s4 (local) completed',
      '-    5  s5 (local) completed',
    ])
    assert.deepEqual(linesOf([local(1, 'b'), local(0, 'a')]), [
      '   0  a (local) completed',
      '   1  b (local) completed',
    ])
  })
})
