import { test } from '@japa/runner'
import { LocalControlPlane } from '../../src/control_plane/local.ts'
import type { ControlMessage } from '../../src/wire/messages.ts'

test.group('local control plane', () => {
  test('every subscriber hears every message, stamped with its publisher', async ({ assert }) => {
    const plane = new LocalControlPlane({ instanceId: 'me' })
    const heard: ControlMessage[] = []
    plane.onControl((message) => heard.push(message))
    plane.onControl((message) => heard.push(message))
    await plane.publishControl({ kind: 'cancel', runId: 'r' })
    await plane.publishControl({ from: 'other', kind: 'enqueued', runId: 'r' })
    assert.deepEqual(heard, [
      { from: 'me', kind: 'cancel', runId: 'r' },
      { from: 'me', kind: 'cancel', runId: 'r' },
      { from: 'other', kind: 'enqueued', runId: 'r' },
      { from: 'other', kind: 'enqueued', runId: 'r' },
    ])
  })

  test('a subscriber that throws is reported and keeps nothing from the others', async ({
    assert,
  }) => {
    const errors: unknown[] = []
    const plane = new LocalControlPlane({ onError: (error) => errors.push(error) })
    let heard = 0
    plane.onControl(() => {
      throw new Error('one')
    })
    plane.onControl(() => Promise.reject(new Error('two')) as never)
    plane.onControl(() => void heard++)
    await plane.publishControl({ kind: 'cancel', runId: 'r' })
    await Promise.resolve()
    assert.equal(heard, 1)
    assert.deepEqual(
      errors.map((error) => (error as Error).message),
      ['one', 'two']
    )
  })

  test('after close nothing is heard', async ({ assert }) => {
    const plane = new LocalControlPlane()
    let heard = 0
    plane.onControl(() => void heard++)
    await plane.close()
    await plane.close()
    plane.onControl(() => void heard++)
    await plane.publishControl({ kind: 'cancel', runId: 'r' })
    assert.equal(heard, 0)
  })
})
