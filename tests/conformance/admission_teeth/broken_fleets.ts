/*
 * Backends whose instances do not keep together what is promised of a fleet.
 */
import { setImmediate as tick } from 'node:timers/promises'
import { asks, type Defect } from './defect.ts'

const DEAD = 'slots of an instance that died come back after its TTL, and not before'
const CLOSED = 'closing an instance releases nothing before its TTL'
const MOVED = 'a slot is of the instance that its holder asked last, whatever becomes of the first'
const NEWS = 'a slot that comes free is told to other instances'

export const TOGETHER: Defect[] = [
  {
    what: 'has queues of its own in each instance',
    noticedBy: [
      'a cap holds across instances, whoever releases',
      'a rate limit holds across instances',
      'instances that ask at once do not exceed a cap together',
      'a holder that asks elsewhere is admitted without a second slot',
      'who waits stands in one line, at whichever instance',
      "fairness 'key' counts what other instances served",
    ],
    apart: true,
  },
  {
    what: 'lets nobody release but the instance that admitted',
    noticedBy: ['a cap holds across instances, whoever releases'],
    members: (it, { holders }, me) => ({
      release: async (queue, waiterId) => {
        if (holders.get(waiterId) === me) await it.release(queue, waiterId)
      },
    }),
  },
  {
    what: 'counts first, and takes a slot a moment later',
    noticedBy: ['instances that ask at once do not exceed a cap together'],
    members: (_it, { clock, holders }) => {
      let cap = Infinity
      return {
        registerQueue: ({ concurrency = Infinity }) => void (cap = concurrency),
        tryAdmit: async (_, { waiterId }) => {
          const isFree = holders.has(waiterId) || holders.size < cap
          await tick()
          if (!isFree) return { admitted: false, retryAt: clock() + 1_000 }
          holders.set(waiterId, 0)
          return { admitted: true }
        },
      }
    },
  },
  asks(
    'takes a holder for another one where it did not ask before',
    ['a holder that asks elsewhere is admitted without a second slot'],
    (request, me) => ({ ...request, waiterId: `${request.waiterId} of ${me}` })
  ),
  {
    what: 'has a line for each instance',
    noticedBy: ['who waits stands in one line, at whichever instance'],
    members: (it, { waiting }, me) => ({
      tryAdmit: async (queue, request) => {
        for (const [waiterId, where] of [...waiting]) {
          if (where !== me) await it.release(queue, waiterId)
        }
        return it.tryAdmit(queue, request)
      },
    }),
  },
  asks(
    'counts for fairness what an instance served itself',
    ["fairness 'key' counts what other instances served"],
    (request, me) => ({ ...request, key: `${request.key} of ${me}` })
  ),
  {
    what: 'tells those of the instance that released alone',
    noticedBy: [NEWS],
    members: (it, world, me) => ({
      release: async (queue, waiterId) => {
        world.releasing = me
        await it.release(queue, waiterId)
      },
      onFreed: (listener) =>
        it.onFreed((queue, next) => {
          if (world.releasing === me) listener(queue, next)
        }),
    }),
  },
  {
    what: 'tells those that wait that others are next',
    noticedBy: [NEWS],
    members: (it) => ({
      onFreed: (listener) => it.onFreed((queue) => listener(queue, ['somebody'])),
    }),
  },
]

export const LEASES: Defect[] = [
  {
    what: 'takes the slots of the silent at once',
    noticedBy: [DEAD, CLOSED],
    settings: () => ({ instanceTtlMs: 1, standsStill: true }),
  },
  {
    what: 'never takes back what a dead instance held',
    noticedBy: [DEAD, CLOSED, MOVED],
    settings: (given) => ({ ...given, instanceTtlMs: Infinity }),
  },
  {
    what: 'lets go of its slots when it is closed',
    noticedBy: [CLOSED],
    members: (it, { holders }, me) => {
      const queues = new Set<string>()
      return {
        registerQueue: (config) => {
          queues.add(config.name)
          it.registerQueue(config)
        },
        close: async () => {
          const own = [...holders].filter(([, first]) => first === me)
          for (const queue of queues) for (const [id] of own) await it.release(queue, id)
          await it.close?.()
        },
      }
    },
  },
  {
    what: 'gives no sign of life but its requests',
    noticedBy: ['slots of an instance that lives are never taken, however long they are held'],
    settings: (given) => ({ ...given, standsStill: true }),
  },
  {
    what: 'leaves a slot with the instance that was asked first',
    noticedBy: [MOVED],
    members: (it, { holders }) => ({
      tryAdmit: async (queue, request) =>
        holders.has(request.waiterId) ? { admitted: true } : it.tryAdmit(queue, request),
    }),
  },
]
