/*
 * Backends that break what is promised of a queue, whoever shares it.
 */
import type { AdmissionRequest, QueueConfig } from '../../../src/flow/port.ts'
import { asks, type Defect, denies, registers } from './defect.ts'

export const CAPS: Defect[] = [
  registers(
    'knows no concurrency',
    ['concurrency 1 blocks the second call until release'],
    (config) => ({ ...config, concurrency: undefined })
  ),
  {
    what: 'keeps a slot that is released',
    noticedBy: ['concurrency 1 blocks the second call until release'],
    members: () => ({ release: async () => {} }),
  },
  registers(
    'knows no rate limit',
    ['a fixed window of 2 blocks the third and reopens in the next window'],
    (config) => ({ ...config, rateLimit: undefined })
  ),
  registers(
    'never opens another window',
    ['a fixed window of 2 blocks the third and reopens in the next window'],
    (config) => ({
      ...config,
      rateLimit: config.rateLimit && { ...config.rateLimit, periodMs: 3_600_000 },
    })
  ),
  {
    what: 'takes what is released out of its window',
    noticedBy: ['a fixed window of 2 blocks the third and reopens in the next window'],
    members: (it) => {
      let config: QueueConfig
      return {
        registerQueue: (given) => it.registerQueue((config = given)),
        release: async (queue, waiterId) => {
          await it.release(queue, waiterId)
          const { limit, periodMs } = config.rateLimit!
          it.registerQueue({ ...config, rateLimit: { limit: limit + 1, periodMs } })
        },
      }
    },
  },
  {
    what: 'books a place in the next window for whoever it denies, each time',
    noticedBy: ['a denial by rate does not use up the window'],
    members: (it, { clock }) => {
      const booked: number[] = []
      return {
        tryAdmit: async (queue, request) => {
          const place = booked.findIndex((from) => from <= clock())
          if (place !== -1) return { admitted: false, retryAt: booked.splice(place, 1)[0] }
          const answer = await it.tryAdmit(queue, request)
          if (!answer.admitted) booked.push(answer.retryAt)
          return answer
        },
      }
    },
  },
  {
    what: 'gates queues that nobody registered',
    noticedBy: ['a queue that is not registered is not gated, and not handled'],
    members: (it, { clock }) => ({
      tryAdmit: async (queue, request) =>
        it.handles(queue)
          ? it.tryAdmit(queue, request)
          : { admitted: false, retryAt: clock() + 1_000 },
    }),
  },
  {
    what: 'handles queues that nobody registered',
    noticedBy: ['a queue that is not registered is not gated, and not handled'],
    members: () => ({ handles: () => true }),
  },
  {
    what: 'frees a slot for the release of another',
    noticedBy: ['releasing a slot that nobody holds changes nothing'],
    members: (it, { holders }) => ({
      release: async (queue, waiterId) => {
        const [first = waiterId] = holders.keys()
        await it.release(queue, holders.has(waiterId) ? waiterId : first)
      },
    }),
  },
  {
    what: 'gives a holder that asks again another slot',
    noticedBy: ['a holder that asks again is admitted without a second slot'],
    members: (it, { holders }) => ({
      tryAdmit: (queue, request) => {
        const waiterId = holders.has(request.waiterId)
          ? `${request.waiterId} and ${holders.size}`
          : request.waiterId
        return it.tryAdmit(queue, { ...request, waiterId })
      },
    }),
  },
  {
    what: 'empties a queue that is registered again',
    noticedBy: ['registering a queue again changes its caps and frees no slot'],
    members: (it, { holders }) => ({
      registerQueue: (config) => {
        for (const waiterId of [...holders.keys()]) void it.release(config.name, waiterId)
        it.registerQueue(config)
      },
    }),
  },
  {
    what: 'keeps the caps that a queue had first',
    noticedBy: ['registering a queue again changes its caps and frees no slot'],
    members: (it) => ({
      registerQueue: (config) => {
        if (!it.handles(config.name)) it.registerQueue(config)
      },
    }),
  },
]

export const LINES: Defect[] = [
  asks('knows no priorities', ['the highest-priority waiter wins a freed slot'], (request) => ({
    ...request,
    priority: undefined,
  })),
  registers(
    'admits the latest arrival, whatever is asked for',
    ['equal waiters are admitted in the order of their arrival'],
    (config) => ({ ...config, order: 'lifo' })
  ),
  registers(
    'admits the earliest arrival, whatever is asked for',
    ["order 'lifo' admits the latest arrival"],
    (config) => ({ ...config, order: 'fifo' })
  ),
  registers(
    'knows no fairness',
    ["fairness 'key' prefers the key that was never served"],
    (config) => ({ ...config, fairness: undefined })
  ),
  denies(
    'tells a waiter to ask again at once',
    ['a denial says when to ask again, later than now'],
    (_, { clock }) => clock()
  ),
  denies(
    'does not go by the retry of the queue',
    ['a denial says when to ask again, later than now'],
    (told) => told + 1_000
  ),
  {
    what: 'puts whoever asks again at the end of the line',
    noticedBy: ['asking again does not lose the place of the first arrival'],
    members: (it, { waiting }) => ({
      tryAdmit: async (queue, request) => {
        if (waiting.has(request.waiterId)) await it.release(queue, request.waiterId)
        return it.tryAdmit(queue, request)
      },
    }),
  },
  {
    what: 'keeps waiters that stopped asking',
    noticedBy: [
      'a waiter that stopped asking leaves the line and blocks nobody',
      'who waits for the next window and does not come holds up nobody for long',
    ],
    members: (it) => {
      const waiting = new Map<string, AdmissionRequest>()
      return {
        tryAdmit: async (queue, request) => {
          for (const other of [...waiting.values()]) {
            if (other.waiterId === request.waiterId) continue
            const { admitted } = await it.tryAdmit(queue, other)
            if (admitted) waiting.delete(other.waiterId)
          }
          const answer = await it.tryAdmit(queue, request)
          if (answer.admitted) waiting.delete(request.waiterId)
          else waiting.set(request.waiterId, request)
          return answer
        },
      }
    },
  },
  {
    what: 'has no line for the next window',
    noticedBy: ['who waits for the next window keeps its place, and is not overtaken'],
    members: (it) => ({
      tryAdmit: async (queue, request) => {
        const answer = await it.tryAdmit(queue, request)
        if (!answer.admitted) await it.release(queue, request.waiterId)
        return answer
      },
    }),
  },
]

const TOLD = 'whoever listens hears the queue in which a slot came free, until it stops'

export const NEWS: Defect[] = [
  { what: 'tells nobody', noticedBy: [TOLD], members: () => ({ onFreed: () => () => {} }) },
  {
    what: 'tells a name of its own',
    noticedBy: [TOLD, 'a slot that comes free is told to other instances'],
    members: (it) => ({
      onFreed: (listener) => it.onFreed((queue, next) => listener(`adm:${queue}`, next)),
    }),
  },
  {
    what: 'goes on telling whoever stopped listening',
    noticedBy: [TOLD],
    members: (it) => ({
      onFreed: (listener) => {
        it.onFreed(listener)
        return () => {}
      },
    }),
  },
]
