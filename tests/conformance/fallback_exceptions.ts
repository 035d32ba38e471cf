/*
 * What a store of required members only cannot have, however it is completed: the sentence that says why,
 * and the cases of the contract that it takes away.
 */
const BY_REASON: [reason: string, cases: string[]][] = [
  [
    'beats are not kept without recordStepHeartbeat',
    [
      'a beat sets time and progress of a row and nothing else',
      'a later save without heartbeat keys keeps the beat',
      'a commit keeps the beat of a row it replaces',
      'a beat moves the aggregates',
    ],
  ],
  [
    'a conditional save is a read and a write, so two writers may both pass the read',
    ['of concurrent settling saves exactly one is true'],
  ],
  [
    'expired events stay in the buffer; their readers skip them',
    [
      'pruning removes events strictly older, of any name, and counts them',
      'pruning up to a limit takes the oldest',
    ],
  ],
  [
    'a fan is never folded; only reads are longer',
    ['a settled range folds into one row; rows outside it and other runs stay'],
  ],
  [
    'a fan is registered wait by wait: what precedes a failure stays',
    ['a fan with a value that cannot be stored rejects and registers nothing'],
  ],
  [
    'admission is the scan of runs that have begun, not a claim',
    [
      'the oldest contender is admitted and marked, a younger one parked until its retry',
      'a holder is confirmed while suspended, blocked or without a live lease',
      'a pending older run keeps its place',
      'a delayed start that has not begun does not block the key before its time',
      'a write that is not terminal keeps the marks',
      'runs that began before admission was tracked count as holders',
    ],
  ],
  [
    'there is nothing to fence reads with; the engine warns at boot',
    [
      'a scoped view hides other runs in every run read',
      'a query that names another namespace finds nothing in a view',
      'an empty scope is unrestricted, and nested views narrow',
    ],
  ],
  [
    'schedules have no place; every call says which members are missing',
    [
      'schedules are created once, read, listed by id, updated and deleted',
      'spec, pause, namespace and last fire of a schedule round-trip and clear',
      'of concurrent creates of a schedule one is true',
    ],
  ],
  [
    'there are no transactions; the call says so',
    [
      'a transaction answers its value with the checkpoint committed',
      'work that throws leaves no checkpoint, and its error comes out',
      'a fenced checkpoint commits only under the lease and turn of a live run',
    ],
  ],
  [
    'without an index over their mark a pass would read every cancelled run there ever was',
    [
      'unfinished cancels are cancelled runs that carry the mark, oldest mark first, capped',
      'unfinished cancels respect the namespace before the limit',
    ],
  ],
  [
    'without an index over deadlines the engine judges runs by their age',
    [
      'overdue runs are live ones at or past their deadline, earliest deadline first, capped',
      'overdue runs respect the namespace before the limit',
    ],
  ],
  [
    'what is buffered cannot be listed; tokens that nobody names are left',
    ['buffered tokens are listed by literal prefix, each once'],
  ],
  ['hints are lost; the poll is the truth', ['a wake hint reaches every listener until it stops']],
  [
    'a commit is a row of single writes: what precedes a refusal or a failure stays',
    [
      'a commit with a value that cannot be stored rejects and applies nothing',
      'a settle and a cancel at once: exactly one ends the run',
    ],
  ],
  [
    'two copies of a commit may both look before either writes',
    ['one commit sent at once twice writes once and takes once'],
  ],
]

export const FALLBACK_EXCEPTIONS: Record<string, string> = Object.fromEntries(
  BY_REASON.flatMap(([reason, cases]) => cases.map((name) => [name, reason]))
)
