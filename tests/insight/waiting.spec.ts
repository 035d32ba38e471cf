/*
 * What a waiter's token stands for.
 */
import { test } from '@japa/runner'
import { waitingOf } from '../../src/insight/waiting.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

test.group('Waits by token', () => {
  test('prefixes tell what a run is parked on', ({ assert }) => {
    assert.deepEqual(waitingOf('wh:r:3'), { on: 'webhook', name: 'wh:r:3' })
    assert.deepEqual(waitingOf('bp:r:3'), { on: 'breakpoint', name: 'breakpoint' })
    assert.deepEqual(waitingOf('child:a:b'), { on: 'child', name: 'a:b' })
    for (const token of ['go', 'task:r:print', 'update:r:x', 'entityreply:r:1', 'whatever', '']) {
      assert.deepEqual(waitingOf(token), { on: 'signal', name: token })
    }
  })

  test('a named event is told by its name', ({ assert }) => {
    const token = `event:${base64('order paid: ✓')}:${base64('{"id":1}')}:r#4`
    assert.deepEqual(waitingOf(token), { on: 'signal', name: 'order paid: ✓' })
  })

  test('a token that merely begins like an event is a signal', ({ assert }) => {
    for (const token of [
      'event:',
      'event::x',
      'event:not base64!:x',
      'event:abc',
      'event:/w==:x',
    ]) {
      assert.deepEqual(waitingOf(token), { on: 'signal', name: token }, token)
    }
  })
})
