/*
 * Explanations in words. Pure. A time stays a time: whoever shows a sentence formats it.
 */
import type {
  Explanation,
  ExplanationCode,
  ExplanationText,
  RemedyCode,
  Sentence,
  SentencePart,
} from '../types/explanation.ts'

export function explanationText(explanation: Explanation, runId: string): ExplanationText {
  const { also = [], more = 0 } = explanation
  const why = [...WHY[explanation.code](explanation)]
  if (explanation.code === 'fan_open') {
    for (const one of also) why.push(' One of them: ', ...WHY[one.code](one))
  } else if (also.length > 0) {
    const others = also.length + more
    why.push(` ${others === 1 ? 'One more wait' : `${others} more waits`} beside it: `)
    also.forEach((one, index) => why.push(...(index > 0 ? ['; '] : []), ...BRIEF[one.code](one)))
    why.push(more > 0 ? '; and more.' : '.')
  }
  return {
    why,
    next: nextOf(explanation),
    you: explanation.remedies.map((remedy) => YOU[remedy](rootOf(explanation), runId)),
    brief: BRIEF[explanation.code](explanation),
  }
}

/** What a remedy is about: that of a fan, or of a child, is one of its own. */
function rootOf(explanation: Explanation): Explanation {
  const [worst] = explanation.code === 'fan_open' ? (explanation.also ?? []) : []
  return worst ? rootOf(worst) : explanation
}

const mono = (value: string | number | undefined): SentencePart => ({ mono: String(value ?? '') })
const run = (value: string | number | undefined): SentencePart => ({ run: String(value ?? '') })

/** `before`, the age and `after`, if the begin is recorded. */
const aged = ({ since }: Explanation, before: string, after = ''): Sentence =>
  since === undefined ? [] : [before, { since }, after]

const plural = (count: string | number | undefined, one: string, many = `${one}s`): string =>
  `${Number(count ?? 0).toLocaleString('en')} ${Number(count) === 1 ? one : many}`

const limit = ({ next }: Explanation): Sentence =>
  next.what === 'gives_up'
    ? [', gives up at ', { time: next.at! }, '.']
    : [', without a time limit.']

const waitsFor =
  (what: string) =>
  (explanation: Explanation): Sentence => [
    `Waits for ${what} `,
    mono(explanation.params.name),
    ...aged(explanation, ', for '),
    ...limit(explanation),
  ]

const undone = ({ params }: Explanation): Sentence => [
  ...(params.undone ? [` ${plural(params.undone, 'step was', 'steps were')} undone.`] : []),
  ...(params.notUndone ? [` ${plural(params.notUndone, 'undo', 'undos')} failed.`] : []),
]

const handled = ({ params }: Explanation): Sentence =>
  params.follower === undefined ? [] : [' It was handed to ', run(params.follower), '.']

const reason = ({ params }: Explanation): Sentence => [
  ...(params.code === undefined ? [] : [' ', mono(params.code)]),
  ...(params.message === undefined
    ? []
    : [params.code === undefined ? ' ' : ': ', String(params.message)]),
]

const by = ({ params }: Explanation): string => (params.by === undefined ? '' : ` by ${params.by}`)

const WHY: Record<ExplanationCode, (explanation: Explanation) => Sentence> = {
  cancelling: (it) => [
    `Cancel was asked for${by(it)} `,
    { since: it.since! },
    ` ago. ${plural(it.params.undone, 'step is', 'steps are')} undone so far`,
    ...(it.params.undo === undefined ? ['.'] : [', now ', mono(it.params.undo), '.']),
  ],
  delayed_start: (it) => ['Starts at ', { time: it.next.at! }, '.'],
  due: (it) => ['Is due for ', { since: it.since! }, ' and was not picked up yet.'],
  pending_queued: (it) => ['Created ', { since: it.since! }, ' ago, not yet picked up.'],
  pending_undriven: (it) => ['Nothing has picked this run up for ', { since: it.since! }, '.'],
  running: (it) => [
    'A process executes it',
    ...aged(it, ' for '),
    ...(it.params.step === undefined ? ['.'] : [', now in ', mono(it.params.step), '.']),
  ],
  lease_expired: (it) => [
    'The process that executed it stopped reporting ',
    { since: it.since! },
    ' ago.',
    it.params.pickups ? ` It was taken over ${plural(it.params.pickups, 'time')} already` : '',
    it.params.limit === undefined || !it.params.pickups
      ? it.params.pickups
        ? '.'
        : ''
      : `, ${it.params.limit} at most.`,
  ],
  blocked_capability: (it) => [`No live worker can run what comes next: ${it.params.message}.`],
  blocked_protocol: (it) => [`No live worker speaks a fitting protocol: ${it.params.message}.`],
  singleton_queued: (it) => [
    'Waits its turn for key ',
    mono(it.params.key),
    `: place ${it.params.place}`,
    ...(it.params.holder === undefined
      ? ['.']
      : [
          '; ',
          run(it.params.holder),
          it.params.holders
            ? ` and ${Number(it.params.holders) - 1} more are inside.`
            : ' is inside.',
        ]),
  ],
  slot_wait: (it) => ['A step waits for a free slot of queue ', mono(it.params.queue), '.'],
  step_backoff: (it) => [
    `Attempt ${it.params.attempt} of `,
    mono(it.params.step),
    ` failed: ${it.params.message}.`,
  ],
  step_working: (it) => [
    mono(it.params.step),
    ' runs on a worker; its last sign of life was ',
    { since: it.since! },
    ' ago',
    it.params.progress === undefined ? '.' : ` (${it.params.progress}).`,
  ],
  step_silent: (it) => [
    mono(it.params.step),
    ' was taken by a worker; there is no sign of life for ',
    { since: it.since! },
    '.',
  ],
  step_in_queue: (it) => [
    mono(it.params.step),
    ' is in the queue of ',
    mono(it.params.group),
    ` (${plural(it.params.depth, 'task')} there, ${plural(it.params.workers, 'worker')}) for `,
    { since: it.since! },
    '.',
  ],
  step_starved: (it) => [
    mono(it.params.step),
    ' was handed to ',
    mono(it.params.group),
    ' ',
    { since: it.since! },
    ` ago, and no worker of it is alive. ${plural(it.params.depth, 'task waits', 'tasks wait')} there.`,
  ],
  step_lost: (it) => [
    mono(it.params.step),
    ' was handed out ',
    { since: it.since! },
    ' ago, and nobody reports working on it: the task is probably lost.',
  ],
  step_out: (it) => [
    mono(it.params.step),
    ' was handed to ',
    mono(it.params.group),
    ' ',
    { since: it.since! },
    ' ago. What works on it is not reported.',
  ],
  fan_open: (it) => {
    const { out, total, completed, failed, notStarted, step } = it.params
    const counts = [
      `${plural(completed, 'ended well', 'ended well')}`,
      `${plural(failed, 'failed', 'failed')}`,
    ]
    if (notStarted) counts.push(`${plural(notStarted, 'not started', 'not started')}`)
    return [
      `${Number(out).toLocaleString('en')} of ${plural(total, step === undefined ? 'child' : 'step', step === undefined ? 'children' : 'steps')}`,
      ...(step === undefined ? [] : [' ', mono(step)]),
      ` ${Number(out) === 1 ? 'is' : 'are'} out; ${counts.join(', ')}.`,
    ]
  },
  sleep: (it) => ['Sleeps until ', { time: it.next.at! }, '.'],
  signal: waitsFor('signal'),
  event: waitsFor('event'),
  update: waitsFor('update'),
  webhook: waitsFor('a call of webhook'),
  task: waitsFor('the outcome of task'),
  breakpoint: (it) => [
    'Stands at ',
    ...(it.params.name === '' ? ['a breakpoint'] : ['breakpoint ', mono(it.params.name)]),
    ...aged(it, ', for '),
    '.',
  ],
  entity: (it) => ['Waits for the answer of an entity', ...aged(it, ', for '), '.'],
  child: (it) => {
    const { child, workflow } = it.params
    if (it.cause === undefined) {
      const gone = it.severity === 'watch' ? ', which is not there.' : '.'
      return ['Waits for child ', run(child), gone]
    }
    return [
      'Waits for child ',
      run(child),
      ` (${workflow}). That one: `,
      ...WHY[it.cause.code](it.cause),
    ]
  },
  outside: (it) => [
    'Waits',
    ...aged(it, ' for '),
    ' for something that is not recorded here: work outside its workflow context, a slot of a queue ' +
      'that another process asks for, or a token that another run waits for by now.',
  ],
  unreachable: () => ['Nothing will wake this run. This should not happen.'],
  completed: (it) => ['Completed ', { since: it.since! }, ' ago.'],
  continued: (it) => ['Continued as ', run(it.params.follower), ' ', { since: it.since! }, ' ago.'],
  failed: (it) => [
    'Failed ',
    { since: it.since! },
    ' ago',
    ...(it.params.step === undefined ? [] : [' in ', mono(it.params.step)]),
    it.params.attempts === undefined ? '' : ` after ${it.params.attempts} attempts`,
    ':',
    ...reason(it),
    '.',
    ...undone(it),
    ...handled(it),
  ],
  cancelled: (it) => [`Cancelled${by(it)} `, { since: it.since! }, ' ago.', ...undone(it)],
  timed_out: (it) => ['Ran out of its time limit ', { since: it.since! }, ' ago.', ...undone(it)],
  dead: (it) => [
    'Given up ',
    { since: it.since! },
    ' ago: its processes died ',
    plural(it.params.pickups, 'time'),
    ' without progress.',
    ...handled(it),
  ],
}

function nextOf({ next, params, cause }: Explanation): Sentence {
  const at: Sentence = next.at === undefined ? [] : [' at ', { time: next.at }]
  switch (next.what) {
    case 'ends_cancelled':
      return ['It ends as cancelled when the last undo has ended or given up.']
    case 'starts':
      return ['It starts by itself', ...at, '.']
    case 'next_tick':
      return ['A worker takes it with its next tick.']
    case 'recovery':
      return ['A worker takes it over with its next tick.']
    case 'looked_at':
      return ['It is looked at again', ...at, '.']
    case 'slot':
      return ['It goes on when a run of its key ends and nobody is before it.']
    case 'slot_asked':
      return ['It goes on when a slot is free; it asks again', ...at, '.']
    case 'attempt':
      return [`Attempt ${Number(params.attempt) + 1} is made`, ...at, '.']
    case 'result':
      return ['It goes on when the result is there.']
    case 'sent_again':
      return ['It is sent again', ...at, '.']
    case 'times_out':
      return ['The attempt fails', ...at, ' unless its worker reports.']
    case 'worker':
      return ['It goes on by itself as soon as a worker of ', mono(params.group), ' is up.']
    case 'fan_ends':
      return ['It goes on when all of them have ended.']
    case 'first_failure':
      return ['It goes on when all of them have ended, or at the first failure.']
    case 'wakes':
      return ['It wakes by itself', ...at, '.']
    case 'news':
      return ['It goes on when this arrives, however long that takes.']
    case 'gives_up':
      return ['It goes on when this arrives, or without it', ...at, '.']
    case 'child_ends':
      return cause
        ? [...nextOf(cause), ' This run follows when the child has ended.']
        : ['It goes on when the child has ended.']
    case 'nothing':
      return ['Nothing happens by itself.']
  }
}

const YOU: Record<RemedyCode, (it: Explanation, runId: string) => Sentence> = {
  start_worker: () => ['Start a worker: ', mono('node ace durable:work')],
  retry: (_, runId) => ['Bring it back: ', mono(`node ace durable:retry ${shell(runId)}`)],
  retry_with_input: (_, runId) => [
    'Run it again from the beginning: ',
    mono(`node ace durable:retry ${shell(runId)} --input='…'`),
  ],
  redispatch: (_, runId) => [
    'If the task is known to be lost, send it again: ',
    mono(`engine.redispatchPending(${quoted(runId)})`),
  ],
  signal: ({ params }) => ['Deliver it: ', mono(`engine.signal(${quoted(params.token)}, …)`)],
  publish_event: ({ params }) => [
    'Publish it: ',
    mono(`engine.publishEvent(${quoted(params.name)}, …)`),
  ],
  update: ({ params }, runId) => [
    'Send it: ',
    mono(`engine.update(${quoted(runId)}, ${quoted(params.name)}, …)`),
  ],
  complete_task: ({ params }, runId) => [
    'Report its outcome: ',
    mono(`engine.completeTask(${quoted(runId)}, ${quoted(params.name)}, …)`),
  ],
  continue: (_, runId) => ['Let it go on: ', mono(`engine.continue(${quoted(runId)})`)],
  cancel: (_, runId) => ['Cancel it: ', mono(`engine.cancel(${quoted(runId)})`)],
}

const quoted = (text: string | number | undefined): string => JSON.stringify(String(text ?? ''))

const shell = (text: string): string =>
  /^[\w.:~@/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

const BRIEF: Record<ExplanationCode, (explanation: Explanation) => Sentence> = {
  cancelling: () => ['cancelling'],
  delayed_start: (it) => ['starts ', { time: it.next.at! }],
  due: (it) => ['due for ', { since: it.since! }],
  pending_queued: () => ['not yet picked up'],
  pending_undriven: (it) => ['not picked up for ', { since: it.since! }],
  running: (it) => (it.params.step === undefined ? ['executing'] : ['in ', mono(it.params.step)]),
  lease_expired: () => ['its process is gone'],
  blocked_capability: () => ['no capable worker'],
  blocked_protocol: () => ['no fitting protocol'],
  singleton_queued: (it) => [`place ${it.params.place} for `, mono(it.params.key)],
  slot_wait: (it) => ['slot of ', mono(it.params.queue)],
  step_backoff: (it) => [mono(it.params.step), ` again `, { time: it.next.at! }],
  step_working: (it) => [mono(it.params.step), ' works'],
  step_silent: (it) => [mono(it.params.step), ' silent for ', { since: it.since! }],
  step_in_queue: (it) => [mono(it.params.step), ' in queue'],
  step_starved: (it) => [mono(it.params.step), ' has no worker'],
  step_lost: (it) => [mono(it.params.step), ' out for ', { since: it.since! }, ', lost?'],
  step_out: (it) => [mono(it.params.step), ' out for ', { since: it.since! }],
  fan_open: (it) => [`${it.params.out} of ${it.params.total} out`],
  sleep: (it) => ['until ', { time: it.next.at! }],
  signal: (it) => ['signal ', mono(it.params.name)],
  event: (it) => ['event ', mono(it.params.name)],
  update: (it) => ['update ', mono(it.params.name)],
  webhook: () => ['webhook'],
  task: (it) => ['task ', mono(it.params.name)],
  breakpoint: (it) => ['breakpoint', ...(it.params.name === '' ? [] : [' ', mono(it.params.name)])],
  entity: () => ['entity'],
  child: (it) => ['child ', run(it.params.child)],
  outside: () => ['something unrecorded'],
  unreachable: () => ['nothing will wake it'],
  completed: () => ['completed'],
  continued: (it) => ['continued as ', run(it.params.follower)],
  failed: (it) => ['failed', ...reason(it)],
  cancelled: () => ['cancelled'],
  timed_out: () => ['out of time'],
  dead: () => ['given up'],
}
