/*
 * Transports that break what is promised of a step, its ids, and who gets it.
 */
import { routingToken } from '../../../src/wire/names.ts'
import { answers, configured, type Defect, doubles, sends, without } from './defect.ts'

const DATE = /^\d{4}-\d\d-\d\dT/
const revived = (input: unknown): unknown =>
  JSON.parse(JSON.stringify(input ?? null), (_, value: unknown) =>
    typeof value === 'string' && DATE.test(value) ? new Date(value) : value
  )

export const STEPS: Defect[] = [
  answers(
    'loses the output',
    'a dispatched step reaches its handler and its output comes back',
    (r) => without(r, 'output')
  ),
  answers(
    'forbids every retry',
    'a throwing handler comes back as a failure that may be retried',
    (r) => (r.error ? { ...r, error: { ...r.error, retryable: false } } : r)
  ),
  answers(
    'keeps the text of an error alone',
    'a fatal failure keeps its code and details and forbids a retry',
    (r) => (r.error ? { ...r, error: { message: r.error.message } } : r)
  ),
  {
    what: 'keeps the first function of a name',
    noticedBy: ['registering a name again swaps its function for the next dispatch'],
    transport: (it, { served }) => ({
      handle: (name, fn, partition) => {
        if (!served.has(name)) it.handle(name, fn, partition)
        served.add(name)
      },
    }),
  },
  {
    what: 'answers before dispatch has returned',
    noticedBy: ['a result is not delivered before dispatch has returned'],
    transport: (it) => {
      const heard = new Map<string, () => void>()
      return {
        onResult: (ear) =>
          it.onResult(async (result) => {
            await ear(result)
            heard.get(result.stepId)?.()
          }),
        dispatch: async (task) => {
          const answered = new Promise<void>((resolve) => heard.set(task.stepId, resolve))
          await it.dispatch(task)
          await answered
        },
      }
    },
  },
  answers(
    'makes ids of what it is given',
    'runId, seq and stepId come back as they were sent',
    (r) => ({
      ...r,
      runId: r.runId.replaceAll(' ', '-'),
    })
  ),
  answers(
    'does not tell when a step began',
    'startedAt is there and not before the dispatch',
    (r) => without(r, 'startedAt')
  ),
  answers(
    'turns the events of a step round',
    'step events come back in order, and no field at all when there are none',
    (r) => (r.events ? { ...r, events: r.events.toReversed() } : r)
  ),
  answers(
    'has a list of events without any',
    'step events come back in order, and no field at all when there are none',
    (r) => ({ ...r, events: r.events ?? [] })
  ),
  {
    what: 'takes texts for dates',
    noticedBy: ['input and output are copies with the meaning of JSON'],
    transport: (it) => ({
      handle: (name, fn, partition) =>
        it.handle(name, (input, log) => fn(revived(input), log), partition),
    }),
  },
  {
    what: 'swallows what cannot be sent',
    noticedBy: ['a cyclic input rejects at dispatch'],
    transport: (it) => ({ dispatch: (task) => it.dispatch(task).catch(() => {}) }),
  },
  {
    what: 'makes text of what has no JSON form',
    noticedBy: ['an output without JSON form is a failure that forbids a retry'],
    transport: (it) => ({
      handle: (name, fn) =>
        it.handle(name, async (input, log) => {
          const output = await fn(input, log)
          return typeof output === 'bigint' ? String(output) : output
        }),
    }),
  },
  {
    what: 'drops pickup beats',
    noticedBy: ['a pickup beat arrives before the handler ends, then its progress'],
    transport: (it) => ({
      onHeartbeat: (ear) =>
        it.onHeartbeat((beat) => (beat.progress ? ear(beat) : Promise.resolve())),
    }),
  },
  answers(
    'folds the letters of run ids',
    'a run id of any form comes back as it was sent, and no two are taken for one',
    (r) => ({ ...r, runId: r.runId.toLowerCase() })
  ),
  sends(
    'leaves the context behind',
    'the attempt comes back, and the context of the dispatch is around the handler',
    (task) => without(task, 'context')
  ),
  sends('cuts what is long', 'a megabyte of input and output crosses whole', (task) =>
    typeof task.input === 'string' ? { ...task, input: task.input.slice(0, 65_536) } : task
  ),
]

const plain = (name: string) => name.replaceAll(/[^\w@]/g, '-')

export const ROUTING: Defect[] = [
  {
    what: 'has one queue for names that look alike',
    noticedBy: ["two names never receive each other's tasks"],
    transport: (it) => ({
      handle: (name, fn, partition) => it.handle(plain(name), fn, partition),
      dispatch: (task) =>
        it.dispatch({ ...task, name: plain(task.name), group: plain(task.group) }),
    }),
  },
  {
    what: 'takes no names but plain ones',
    noticedBy: ['a name of spaces, digits and other scripts is served'],
    transport: (it) => ({
      dispatch: async (task) => {
        if (/[^\w:.@-]/.test(task.name)) throw new Error('no name for a queue')
        await it.dispatch(task)
      },
    }),
  },
  sends('has no partitions', 'a partition serves its own tasks and no others', (task) => ({
    ...task,
    group: routingToken(task.name),
  })),
  {
    what: 'serves the bare pool beside the one of a worker',
    noticedBy: ['a worker of a partition leaves bare tasks and those of other partitions alone'],
    transport: (it) => ({
      handle: (name, fn, partition) => {
        it.handle(name, fn, partition)
        if (partition !== undefined) it.handle(name, fn)
      },
    }),
  },
  doubles('result', 'tasks that are dispatched at the same time all come back, each once'),
  {
    what: 'may be asked again for a name that nobody serves',
    noticedBy: ['a name nobody serves is refused for good, or stays silent'],
    transport: (it, world) => ({
      onResult: (ear) => void it.onResult((world.hear = ear)),
      handle: (name, fn) => {
        world.served.add(name)
        it.handle(name, fn)
      },
      dispatch: async (task) => {
        if (world.served.has(task.name)) return it.dispatch(task)
        const { runId, seq, stepId, name } = task
        const error = { message: `no handler for ${name}`, retryable: true }
        void world.hear?.({ runId, seq, stepId, status: 'failed', error })
      },
    }),
  },
  doubles('task', 'two workers on one name process each task once'),
  configured(
    'knows no namespaces',
    ['namespaces on one backend never meet', 'a namespace sees its own workers alone'],
    (given) => ({ ...given, namespace: undefined })
  ),
  {
    what: 'refuses every pool',
    noticedBy: ['in a namespace, the pool of its name is served by who serves the bare name'],
    transport: (it) => ({
      dispatch: async (task) => {
        if (task.group.includes('@')) throw new Error('the task of another pool')
        await it.dispatch(task)
      },
    }),
  },
  {
    what: 'takes the end of a name for a pool',
    noticedBy: ['in a namespace, a name that ends like a pool is served as it is'],
    transport: (it) => ({
      dispatch: (task) => it.dispatch({ ...task, name: task.name.replace(/@.*/, '') }),
    }),
  },
  configured(
    'has a pool for those that name none and one for default',
    ['the default namespace is the unset one, an explicit one stays'],
    (given) => ({ ...given, namespace: given.namespace === 'default' ? 'own' : given.namespace })
  ),
]
