/*
 * The link between pods without a store and a control plane: starts, requests and their replies, events.
 */
import assert from 'node:assert/strict'
import type { RunReply, RunRequest, StartRunMessage, TenantEvent } from '../../../wire/messages.ts'
import { eventually, quietly, repeated, type TransportSession } from '../transport_session.ts'
import { fresh, shared, type TransportCase } from './case.ts'

const STARTS = { members: ['dispatchStartRun', 'onStartRun'] } as const
const REQUESTS = {
  members: ['dispatchRunRequest', 'onRunRequest', 'publishRunReply', 'onRunReply'],
} as const
const EVENTS = { members: ['publishTenantEvent', 'onTenantEvent'] } as const

const startOf = ({ prefix }: TransportSession, index: number): StartRunMessage => ({
  tenant: 'acme.c2lnbmF0dXJl',
  workflow: 'order',
  input: { ü: [index] },
  runId: `${prefix}:${index}`,
  tags: ['a', 'b:c'],
  searchAttributes: { region: 'eu' },
})

const requestOf = ({ prefix }: TransportSession, index: number): RunRequest => ({
  requestId: `${prefix}-request-${index}`,
  tenant: 'acme',
  body: { kind: 'signal', runId: 'r:1', signal: 'paid', payload: { n: index } },
})

const eventOf = (tenant: string, runId: string): TenantEvent => ({
  tenant,
  event: { type: 'run.completed', runId, workflow: 'order', at: new Date(0) } as never,
})

/** What one subscriber hears: run ids of events. */
function subscribed({ transport }: TransportSession, tenant: string) {
  const heard: string[] = []
  const stop = transport.onTenantEvent!(tenant, ({ event }) => void heard.push(event.runId))
  return { heard, stop }
}

/** Events may be lost until a subscription is known: publishes until everybody heard one. */
async function untilHeard(
  { transport, prefix }: TransportSession,
  tenant: string,
  heard: string[][]
): Promise<void> {
  await repeated(
    `subscribers of ${tenant}`,
    () => transport.publishTenantEvent!(eventOf(tenant, `${prefix}:warm`)),
    () => heard.every((each) => each.length > 0)
  )
}

export const TENANT_CASES: TransportCase[] = [
  shared(
    'a start reaches one control plane, as it was sent',
    async (bench) => {
      const pod = await bench.session()
      const planes = [await bench.session(), await bench.session()]
      const heard: StartRunMessage[] = []
      for (const { transport } of planes) {
        transport.onStartRun!(async (message) => void heard.push(message))
      }
      const sent = [0, 1, 2, 3].map((index) => startOf(pod, index))
      for (const message of sent) await pod.transport.dispatchStartRun!(message)
      await eventually('every start', () => heard.length >= sent.length)
      await quietly()
      const byId = [...heard].sort((a, b) => (a.runId! < b.runId! ? -1 : 1))
      assert.deepEqual(
        byId.map((message) => ({ ...message })),
        sent
      )
    },
    STARTS
  ),
  fresh(
    'a start that its handler refused comes again, and is reported',
    async (bench) => {
      const session = await bench.session()
      const heard: StartRunMessage[] = []
      session.transport.onStartRun!((message) => {
        heard.push(message)
        return heard.length > 1 ? Promise.resolve() : Promise.reject(new Error('refused'))
      })
      await session.transport.dispatchStartRun!(startOf(session, 0))
      await eventually('the second delivery', () => heard.length === 2)
      assert.deepEqual({ ...heard[1] }, startOf(session, 0))
      session.assertReported('refused')
    },
    STARTS
  ),
  shared(
    'the reply to a request reaches the pod that asked, with its result or its error',
    async (bench) => {
      const plane = await bench.session()
      const pods = [await bench.session(), await bench.session()]
      const requests: RunRequest[] = []
      plane.transport.onRunRequest!(async (request) => {
        requests.push(request)
        const { requestId } = request
        const [ok, error] = [
          { ok: true, data: { ü: [requestId] } },
          { ok: false, error: { message: 'not yours', code: 'cross-tenant' } },
        ] as const
        await plane.transport.publishRunReply!({
          requestId,
          result: requestId.endsWith('0') ? ok : error,
        })
      })
      const replies = pods.map(({ transport }) => {
        const heard = new Map<string, RunReply>()
        transport.onRunReply!((reply) => void heard.set(reply.requestId, reply))
        return heard
      })
      for (const [index, pod] of pods.entries()) {
        const request = requestOf(pod, index)
        // Replies are not kept: a pod whose listening is not known yet asks again.
        await repeated(
          `the reply to pod ${index}`,
          () => pod.transport.dispatchRunRequest!(request),
          () => replies[index].has(request.requestId)
        )
        assert.deepEqual({ ...requests.at(-1) }, request)
      }
      const [first, second] = pods.map((pod, index) => requestOf(pod, index).requestId)
      assert.deepEqual(replies[0].get(first)?.result, { ok: true, data: { ü: [first] } })
      assert.deepEqual(replies[1].get(second)?.result, {
        ok: false,
        error: { message: 'not yours', code: 'cross-tenant' },
      })
    },
    REQUESTS
  ),
  shared(
    'an event reaches every subscriber of its tenant, and nobody else',
    async (bench) => {
      const plane = await bench.session()
      const pods = [await bench.session(), await bench.session()]
      const acme = [...pods, pods[0]].map((pod) => subscribed(pod, 'acme').heard)
      const globex = subscribed(pods[1], 'globex').heard
      await untilHeard(plane, 'acme', acme)
      await untilHeard(plane, 'globex', [globex])
      await plane.transport.publishTenantEvent!(eventOf('acme', 'the one'))
      await eventually('the event', () => acme.every((heard) => heard.includes('the one')))
      await plane.transport.publishTenantEvent!(eventOf('globex', 'the other'))
      await eventually('the other event', () => globex.includes('the other'))
      assert.deepEqual(
        acme.map((heard) => heard.filter((runId) => runId === 'the one').length),
        [1, 1, 1]
      )
      assert.equal(globex.includes('the one'), false)
      assert.ok(acme.every((heard) => !heard.includes('the other')))
    },
    EVENTS
  ),
  shared(
    'a subscriber that leaves takes no other with it',
    async (bench) => {
      const plane = await bench.session()
      const pods = [await bench.session(), await bench.session()]
      const all = [pods[0], pods[0], pods[1]].map((pod) => subscribed(pod, 'acme'))
      const [leaving, beside, elsewhere] = all
      await untilHeard(
        plane,
        'acme',
        all.map(({ heard }) => heard)
      )
      leaving.stop()
      leaving.stop()
      await plane.transport.publishTenantEvent!(eventOf('acme', 'after'))
      await eventually('the others', () =>
        [beside, elsewhere].every(({ heard }) => heard.includes('after'))
      )
      assert.equal(leaving.heard.includes('after'), false)
    },
    EVENTS
  ),
  shared(
    'a subscriber that throws is reported, and keeps nothing from the others',
    async (bench) => {
      const plane = await bench.session()
      const pod = await bench.session()
      pod.transport.onTenantEvent!('acme', () => {
        throw new Error('refused event')
      })
      const { heard } = subscribed(pod, 'acme')
      await untilHeard(plane, 'acme', [heard])
      pod.assertReported('refused event')
    },
    EVENTS
  ),
]
