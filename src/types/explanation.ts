/*
 * Why a run is where it is and what comes next, as data: the console, the commands and whatever else shows
 * runs say the same.
 */

/** Stable names of situations. */
export type ExplanationCode =
  | 'cancelling'
  | 'delayed_start'
  | 'due'
  | 'pending_queued'
  | 'pending_undriven'
  | 'running'
  | 'lease_expired'
  | 'blocked_capability'
  | 'blocked_protocol'
  | 'singleton_queued'
  | 'slot_wait'
  | 'step_backoff'
  | 'step_working'
  | 'step_silent'
  | 'step_in_queue'
  | 'step_starved'
  | 'step_lost'
  | 'step_out'
  | 'fan_open'
  | 'sleep'
  | 'signal'
  | 'event'
  | 'update'
  | 'webhook'
  | 'task'
  | 'breakpoint'
  | 'entity'
  | 'child'
  | 'outside'
  | 'unreachable'
  | 'completed'
  | 'continued'
  | 'failed'
  | 'cancelled'
  | 'timed_out'
  | 'dead'

/** What happens by itself; `nothing` says that nothing does. */
export type NextCode =
  | 'ends_cancelled'
  | 'starts'
  | 'next_tick'
  | 'recovery'
  | 'looked_at'
  | 'slot'
  | 'slot_asked'
  | 'attempt'
  | 'result'
  | 'sent_again'
  | 'times_out'
  | 'worker'
  | 'fan_ends'
  | 'first_failure'
  | 'wakes'
  | 'news'
  | 'gives_up'
  | 'child_ends'
  | 'nothing'

/** What a person can do about it. */
export type RemedyCode =
  | 'start_worker'
  | 'retry'
  | 'retry_with_input'
  | 'redispatch'
  | 'signal'
  | 'publish_event'
  | 'update'
  | 'complete_task'
  | 'continue'
  | 'cancel'

export interface Explanation {
  code: ExplanationCode
  /** `calm`: as the author wrote it. `watch`: unusual. `act`: somebody has to do something. */
  severity: 'calm' | 'watch' | 'act'
  /** Epoch ms; absent when it is not recorded. */
  since?: number
  next: { at?: number; what: NextCode }
  params: Record<string, string | number>
  remedies: RemedyCode[]
  /** Further waits beside this one, at most 4. */
  also?: Explanation[]
  /** How many waits there are beside those in `also`. */
  more?: number
  /** Why the child that is waited for is where it is. */
  cause?: Explanation
  /** The chain of awaited children down to the root cause, at most 5. */
  via?: { runId: string; workflow: string }[]
}

/**
 * A sentence in parts: an instant, an age that counts on from an instant, a fixed length (all in ms), the
 * id of a run, and text as code writes it.
 */
export type SentencePart =
  | string
  | { time: number }
  | { since: number }
  | { span: number }
  | { run: string }
  | { mono: string }

export type Sentence = SentencePart[]

/** An explanation in words. */
export interface ExplanationText {
  why: Sentence
  next: Sentence
  /** What a person can do; empty when nothing needs to be done. */
  you: Sentence[]
  /** A few words for a list. */
  brief: Sentence
}

/** What `explainRun` answers. */
export interface RunExplanation extends Explanation {
  runId: string
  text: ExplanationText
}
