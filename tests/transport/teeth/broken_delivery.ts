/*
 * Transports that break what is promised of delivery, of how much runs at once, and of workers that die.
 */
import { configured, type Defect, type Ear } from './defect.ts'

/** Only what a handler refused shows these: its message is taken for handled. */
const taken = <M>(listen: Ear<M>): Ear<M> => {
  return (handler) => listen((message) => handler(message).catch(() => {}))
}

export const DELIVERY: Defect[] = [
  {
    what: 'loses what is refused',
    noticedBy: [
      'a result that its handler refused comes again',
      'a decision that its handler refused comes again, and is reported',
      'a step event arrives as it was sent, and again when it was refused',
      'a start that its handler refused comes again, and is reported',
    ],
    transport: (it) => ({
      onResult: taken((ear) => it.onResult(ear)),
      onDecision: taken((ear) => it.onDecision(ear)),
      onStepEvent: taken((ear) => it.onStepEvent(ear)),
      onStartRun: taken((ear) => it.onStartRun(ear)),
    }),
  },
  configured(
    'reports nothing',
    [
      'a heartbeat handler that throws hears the next beats',
      'failures of result and heartbeat handlers are reported',
      'a decision that its handler refused comes again, and is reported',
      'a turn whose handler throws comes again, and is reported',
      'a step event arrives as it was sent, and again when it was refused',
      'a start that its handler refused comes again, and is reported',
      'a subscriber that throws is reported, and keeps nothing from the others',
    ],
    (given) => ({ ...given, onError: () => {} })
  ),
  {
    what: 'sends each step once',
    noticedBy: ['a retry that is dispatched while the failure is in hand comes back too'],
    transport: (it, { sent }) => ({
      dispatch: async (task) => {
        if (!sent.has(task.stepId)) await it.dispatch(task)
        sent.add(task.stepId)
      },
    }),
  },
  {
    what: 'defers nothing',
    noticedBy: [
      'deferred consumers claim nothing, then take what piled up',
      'deferred engines hear no results until they start',
      'a worker whose consumers are deferred is not announced until they start',
    ],
    transport: () => ({ deferConsumers: () => {} }),
  },
  {
    what: 'starts after its end',
    noticedBy: ['what was parked when its transport closed never starts'],
    transport: (it, world) => {
      const parked = new Map<string, (input: unknown) => unknown>()
      let isDeferred = false
      return {
        deferConsumers: () => {
          isDeferred = true
          it.deferConsumers()
        },
        handle: (name, fn, partition) => {
          if (isDeferred) parked.set(name, (input) => fn(input, null!))
          it.handle(name, fn, partition)
        },
        startConsumers: () => {
          for (const [name, fn] of parked) world.undead.set(name, fn)
        },
        onResult: (ear) => void it.onResult((world.hear = ear)),
        dispatch: async (task) => {
          const fn = world.undead.get(task.name)
          if (!fn) return it.dispatch(task)
          const { runId, seq, stepId, input } = task
          setImmediate(() => {
            void world.hear?.({ runId, seq, stepId, status: 'completed', output: fn(input) })
          })
        },
      }
    },
  },
  {
    what: 'ends only once',
    noticedBy: ['close twice is fine, and nothing is consumed afterwards'],
    transport: (it) => {
      let isClosed = false
      return {
        close: async () => {
          if (isClosed) throw new Error('it is closed')
          isClosed = true
          await it.close()
        },
      }
    },
  },
  {
    what: 'forgets a timer',
    noticedBy: ['close leaves no timer'],
    config: (given) => {
      given.timers?.every(60_000, () => {})
      return given
    },
  },
]

export const PACE: Defect[] = [
  configured(
    'runs two tasks at a time by default',
    ['one task runs at a time unless told otherwise'],
    (given) => ({ concurrency: 2, ...given })
  ),
  configured(
    'runs one task more than it may',
    ['as many tasks as concurrency says run at once, and no more'],
    (given) => ({ ...given, concurrency: Number(given.concurrency ?? 1) + 1 })
  ),
  configured(
    'takes one result more than it may',
    ['as many results as resultConcurrency says are in hand at once, and no more'],
    (given) => ({ ...given, resultConcurrency: (given.resultConcurrency ?? 1) + 1 })
  ),
  {
    // Its ten levels are too few for those of the contract, which is why it does not claim this ability.
    what: 'is the queue transport as it is',
    noticedBy: [
      'the more urgent task is taken first, equals in their order',
      'what a worker answers that lost its task is dropped',
    ],
  },
  {
    what: 'takes the last task first',
    noticedBy: ['tasks without a priority are taken in the order of their dispatch'],
    adapter: (it) => {
      let urgency = 0
      return {
        pushOn: (queue, job) =>
          it.pushOn(queue, job.name === 'task' ? { ...job, priority: --urgency } : job),
      }
    },
  },
]

export const LEASES: Defect[] = [
  {
    what: 'looks for no silent workers',
    noticedBy: [
      'a task whose worker stands still is done by another one, whose answer comes first',
      'a turn whose worker stands still is decided by another one',
    ],
    adapter: () => ({ recoverStalledJobs: async () => 0 }),
  },
  {
    what: 'renews nothing',
    noticedBy: ['a task that runs longer than its lease stays with a worker that lives'],
    adapter: () => ({ renewJobs: async (_queue, ids) => ids.length }),
  },
  configured(
    'has no bound for deaths',
    [
      'a task that silenced too many workers fails once, and may be retried',
      'a turn that silenced too many workers is dropped, and reported',
    ],
    (given) => ({ ...given, maxStalledCount: 1_000 })
  ),
  {
    what: 'counts a deploy',
    noticedBy: ['close hands what still runs to another worker at once, and that does not count'],
    adapter: (it) => ({
      retryJob: async (id, queue, at) => {
        await it.retryJob(id, queue, at)
        if (at !== undefined) return
        const job = await it.popFrom(queue)
        if (!job) return
        await it.completeJob(job.id, queue)
        await it.pushOn(queue, {
          ...job,
          id: `${job.id} again`,
          payload: JSON.parse(job.payload as string),
          stalledCount: (job.stalledCount ?? 0) + 1,
        })
      },
    }),
  },
]
