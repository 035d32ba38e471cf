import { test } from '@japa/runner'
import { eventually, quietly } from '../../../src/testing/contracts/transport_session.ts'
import { BullBench, redisUrl } from './bench.ts'

if (redisUrl) {
  test.group('bullmq | tenants', (group) => {
    group.each.timeout(30_000)

    test('a start and a request reach one control plane, the reply every pod', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const pod = await bench.transport()
      const planes = [await bench.transport(), await bench.transport()]
      const starts: unknown[] = []
      for (const plane of planes) {
        plane.onStartRun(async (message) => void starts.push(message))
        plane.onStartRun(async () => void starts.push('a second registration'))
        plane.onRunRequest(async ({ requestId }) =>
          plane.publishRunReply({ requestId, result: { ok: true, data: 1 } })
        )
      }
      const replies: unknown[] = []
      pod.onRunReply((reply) => void replies.push(reply))
      pod.onRunReply(() => void replies.push('a second registration'))
      const start = { tenant: 't', workflow: 'ship', input: null, runId: 'a:b', tags: ['x'] }
      await pod.dispatchStartRun(start)
      await pod.dispatchRunRequest({
        requestId: 'q',
        tenant: 't',
        body: { kind: 'getRun', runId: 'a:b' },
      })
      await eventually('start and reply', () => starts.length > 0 && replies.length > 0)
      await quietly()
      assert.deepEqual(starts, [start])
      assert.deepEqual(replies, [{ requestId: 'q', result: { ok: true, data: 1 } }])
    })

    test('an event reaches every subscriber of its tenant until it leaves', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const transport = await bench.transport()
      const heard: string[] = []
      const leave = transport.onTenantEvent('a', ({ event }) => void heard.push(`1 ${event.runId}`))
      transport.onTenantEvent('a', () => {
        throw new Error('a listener broke')
      })
      transport.onTenantEvent('a', ({ event }) => {
        heard.push(`2 ${event.runId} ${event.at instanceof Date}`)
      })
      transport.onTenantEvent('b', () => void heard.push('b'))
      const send = (runId: string) =>
        transport.publishTenantEvent({
          tenant: 'a',
          event: { type: 'run.started', runId, at: new Date(0) } as never,
        })
      await send('one')
      await eventually('both', () => heard.length === 2)
      leave()
      await send('two')
      await eventually('the one that stayed', () => heard.length === 3)
      assert.deepEqual(heard, ['1 one', '2 one true', '2 two true'])
    })

    test('a step event reaches one engine, and comes again when it is refused', async ({
      assert,
      cleanup,
    }) => {
      const bench = new BullBench(cleanup)
      const worker = await bench.transport()
      const engines = [
        await bench.transport({ onError: () => {} }),
        await bench.transport({ onError: () => {} }),
      ]
      let refusals = 1
      const heard: string[] = []
      for (const engine of engines) {
        engine.onStepEvent(async ({ name }) => {
          if (refusals-- > 0) throw new Error('refused')
          heard.push(name)
        })
      }
      const event = { runId: 'r', seq: 1, name: 'pack', phase: 'running', startedAt: 3 } as const
      await worker.dispatchStepEvent(event)
      await eventually('the event', () => heard.length > 0)
      await quietly()
      assert.deepEqual(heard, ['pack'])
    })
  })
}
