/*
 * The sentences of the published page on singleton workflows, each with the test that holds it. Those about
 * remote workflows and about `scopeReads` come with these.
 */
const RACES = 'tests/races/singletons.spec.ts'
const HERE = 'tests/races/singleton_sentences.spec.ts'
const STORE = 'src/testing/contracts/state_store/singletons.ts'
const QUOTAS = 'tests/races/quotas.spec.ts'
const RULES = 'tests/store/memory/singleton_rules.spec.ts'

export interface Promised {
  sentence: string
  file: string
  title: string
}

const promised = (file: string, title: string, ...sentences: string[]): Promised[] =>
  sentences.map((sentence) => ({ sentence, file, title }))

export const SENTENCES: Promised[] = [
  ...promised(
    RACES,
    'runs of one key never overlap; another key has its own slot',
    "two sync-inventory runs for storeId: 'A' never overlap, while a run for storeId: 'B' proceeds",
    'the waiters sit suspended with zero compute',
    'Two different runIds that share a singleton key are two real runs'
  ),
  ...promised(
    RACES,
    'claims at the same moment admit no more than the limit',
    'the engine admits at most limit runs sharing that key at a time, across every instance',
    'Two replicas claiming at the same moment are serialized by the store'
  ),
  ...promised(
    STORE,
    'another workflow has its own slot; another namespace shares it',
    'The key is scoped to the workflow: admission only looks at runs of the same workflow',
    'the slot claim always counts every active run of the workflow that shares the key'
  ),
  ...promised(
    QUOTAS,
    'a key is shared across workflows; an ended run makes room',
    'A concurrency quota key, by contrast, is shared across workflows'
  ),
  ...promised(
    HERE,
    'a run is tagged with its key when it is started, before anything of it executes',
    'A singleton run is tagged singleton:<key> at start time'
  ),
  ...promised(
    HERE,
    'without maxQueueDepth a start is never refused, however many are there',
    'Start never blocks and, without maxQueueDepth, never fails',
    'Left unset, the same-key backlog can grow without bound'
  ),
  ...promised(
    HERE,
    'the gate asks a run that is marked running, once, and lets its lease go when it has to wait',
    'first marked running, then checked before its body executes',
    'The check is one atomic call to the store, tryAdmitSingleton',
    'still inside that transaction, and the engine releases the lease'
  ),
  ...promised(
    STORE,
    'a pending older run keeps its place',
    'runs in pending, running, suspended or blocked count',
    'Both are in the FIFO queue from the moment they are created (pending counts)'
  ),
  ...promised(
    STORE,
    'the oldest contender is admitted and marked, a younger one parked until its retry',
    'A holder is marked durably on the run itself, with durable:singleton:admitted',
    'the store adds the admission tag in the same transaction and the body runs',
    'Otherwise the store parks the run suspended with a retry wakeAt'
  ),
  ...promised(
    STORE,
    'of equally old contenders the lowest id is admitted',
    'The free slots go to the oldest waiters by (createdAt, id)'
  ),
  ...promised(
    STORE,
    'concurrent claims admit no more than the limit, and the oldest',
    'a single transaction that serializes competing claims'
  ),
  ...promised(
    HERE,
    'retries of runs that wait are spread over half a second around a second',
    '~1s, jittered ±250ms so a queue of waiters does not wake in lockstep'
  ),
  ...promised(
    RACES,
    'a waiter whose wake was lost is in by its retry',
    'The timer poller wakes it and the claim runs again',
    'if the notify is missed, the next timer tick catches up'
  ),
  ...promised(
    RACES,
    'a holder keeps its slot while it waits, and is confirmed without a claim',
    'A holder that sleeps or waits on a signal keeps its slot',
    'Each admission check after the first is a cheap confirmation'
  ),
  ...promised(
    STORE,
    'a holder is confirmed while suspended, blocked or without a live lease',
    'A holder that is parked blocked, or whose execution lease expires, keeps its slot',
    'Runs that already hold a slot keep it'
  ),
  ...promised(
    RACES,
    'a holder whose process died keeps its slot until recovery drives it again',
    'A holder that is recovered by another instance keeps its slot',
    'A holder whose process crashes keeps its slot until recovery re-drives it'
  ),
  ...promised(
    HERE,
    'a start in the same millisecond whose id sorts first takes no slot from a holder',
    'A later start can not take a slot away from a holder'
  ),
  ...promised(
    STORE,
    'a terminal write frees the slot and takes the marks, conditional or not',
    'A slot is held until the run reaches a terminal status',
    'A store must drop the markers when updateRun/updateRunIf writes a terminal status'
  ),
  ...promised(STORE, 'a write that is not terminal keeps the marks', 'nothing else releases it'),
  ...promised(
    RACES,
    'the end of a holder wakes the oldest waiter at once, and that one only',
    'Completion is push, not just poll'
  ),
  ...promised(
    RACES,
    'a cancelled holder leaves its slot; a cancelled waiter is not inside',
    'a terminal state — including a cancel'
  ),
  ...promised(
    'tests/races/timeouts.spec.ts',
    'a singleton slot of a timed-out run goes to the one that waits',
    'or an execution-timeout sweep'
  ),
  ...promised(
    HERE,
    'as many waiters are woken as may be inside, and a holder that sleeps is left alone',
    'makes the oldest limit gated waiters sharing its key due and dispatches them',
    'Sleeping holders are left alone',
    'only as many as there are free slots actually run'
  ),
  ...promised(
    HERE,
    'the death of a holder frees its slot, and the waiters learn of it by their retry',
    'the dead write drops the tag, and the waiters claim the slot on their next retry'
  ),
  ...promised(
    RACES,
    'an older run that is picked up after a younger one goes first',
    'An older run that a worker picks up after a younger one is never admitted alongside it'
  ),
  ...promised(
    RACES,
    'a cancel while the claim is in flight is not undone by the gate',
    'A cancel is never undone by the gate'
  ),
  ...promised(
    HERE,
    'runs of one key in two namespaces share the slot; a tenant in the key parts them',
    'Admission is global: one run at a time in every namespace',
    'To get one slot per tenant, put the tenant in the key'
  ),
  ...promised(
    // Every race runs over it.
    'tests/helpers/stores_under_test.ts',
    'codec over memory',
    'CodecStateStore forwards the call to the store it wraps'
  ),
  ...promised(
    HERE,
    'the slot is a tag: no table and no column is of singletons',
    'No migration is needed: the slot is a tag on the existing tags column'
  ),
  ...promised(
    STORE,
    'runs that began before admission was tracked count as holders',
    'including the count of holders admitted by pre-0.51 replicas'
  ),
  ...promised(
    STORE,
    'keys with quotes, wildcards and a common beginning stay apart',
    "this workflow's runs carrying the same singleton:<key> tag"
  ),
  ...promised(
    RACES,
    'the fallback warns once an engine, and names what is missing',
    'A custom StateStore without tryAdmitSingleton keeps working',
    'The engine prints one warning per engine the first time it admits this way'
  ),
  ...promised(
    HERE,
    'an engine without a logger warns on the console, once, naming the missing member',
    'console.warn, naming StateStore.tryAdmitSingleton'
  ),
  ...promised(
    RULES,
    'a denial parks until the retry and tracks the run once',
    'singletonAdmissionTags and singletonAdmissionDenialPatch implement the decision'
  ),
  ...promised(
    RULES,
    'tags without markers are returned as they are',
    'withoutSingletonMarkers drops the tags'
  ),
  ...promised(
    RACES,
    'a full queue refuses a start and leaves no trace; starting an id again is never refused',
    'a further start is rejected outright with SingletonQueueFullError, and no run is created',
    'error.workflow, error.key, error.maxQueueDepth',
    'a rejected start leaves no trace in the store',
    'the backlog count drops below the cap and the next start is accepted again',
    'An idempotent re-start of an existing runId is never rejected',
    'a singleton workflow can still be started with a deterministic runId'
  ),
  ...promised(
    RACES,
    'a child that finds the queue full is a failed child',
    'a rejected child start is delivered to the parent as a failed child'
  ),
  ...promised(
    HERE,
    'a full queue refuses what an event and a schedule start, and both say so',
    'The check applies wherever the workflow is started: event triggers and schedules'
  ),
  ...promised(
    HERE,
    'runs of a schedule with a constant key follow one another',
    'Making the scheduled workflow a singleton serializes those runs'
  ),
  ...promised(
    HERE,
    'signalWithStart does not get past the gate: the run waits, its signal is kept',
    'signalWithStart does not bypass the singleton gate',
    'with maxQueueDepth set, rejected with SingletonQueueFullError as any other start',
    'The signal is buffered, but the body does not execute until the run is admitted'
  ),
]
