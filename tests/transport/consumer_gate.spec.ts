import { test } from '@japa/runner'
import { ConsumerGate } from '../../src/transport/consumer_gate.ts'

test.group('consumer gate', () => {
  test('consumers start at once unless deferred', ({ assert }) => {
    const gate = new ConsumerGate()
    const started: string[] = []
    gate.whenOpen(() => started.push('before'))
    gate.defer()
    gate.whenOpen(() => started.push('first'))
    gate.whenOpen(() => started.push('second'))
    assert.deepEqual(started, ['before'])
    gate.start()
    assert.deepEqual(started, ['before', 'first', 'second'])
    gate.whenOpen(() => started.push('after'))
    gate.start()
    assert.deepEqual(started, ['before', 'first', 'second', 'after'])
  })

  test('a parked lane keeps its work in order; one that runs goes on', ({ assert }) => {
    const gate = new ConsumerGate()
    const done: string[] = []
    const running = gate.lane()
    gate.defer()
    const parked = gate.lane()
    running.run(() => done.push('running'))
    parked.run(() => done.push('1'))
    parked.run(() => done.push('2'))
    assert.deepEqual([running.open, parked.open], [true, false])
    assert.deepEqual(done, ['running'])
    gate.start()
    parked.run(() => done.push('3'))
    assert.isTrue(parked.open)
    assert.deepEqual(done, ['running', '1', '2', '3'])
  })

  test('what was parked when the gate closed never starts', ({ assert }) => {
    const gate = new ConsumerGate()
    const done: string[] = []
    gate.defer()
    gate.lane().run(() => done.push('parked'))
    gate.close()
    gate.start()
    gate.whenOpen(() => done.push('late'))
    assert.deepEqual(done, [])
  })
})
