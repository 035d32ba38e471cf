/*
 * Seeds that once failed, under the behaviour they guard; they run first. A change of the generator
 * gives an old seed another story: a defect that matters has a spec of its own as well.
 */
export const REGRESSIONS: { seed: number; guards: string }[] = [
  { seed: 5, guards: 'local work that ended during a read is not begun again' },
  { seed: 33, guards: 'the answer of a commit keeps the order of rows delivered meanwhile' },
  { seed: 89, guards: 'a dispatched undo that is done is not sent again' },
  { seed: 435, guards: 'a failure that comes again does not end the retry that followed it' },
  { seed: 1453, guards: 'a failed dispatch answers the body only once the store agrees' },
  { seed: 2198, guards: 'a fan that is tried again leaves its place in the order' },
  { seed: 2730, guards: 'recovery leaves dispatched undos to the turn that follows their list' },
  { seed: 4310, guards: 'a requeue writes what it takes back under the lease of the run' },
  { seed: 92, guards: 'an answer that the store refused once does not fail the entity' },
  { seed: 103, guards: 'operations in the buffer outlive the failure of the one before them' },
  { seed: 128, guards: 'an operation that was taken by a run that is buried is applied' },
  { seed: 256, guards: 'the answer of an entity waits for a caller that is re-opened' },
  { seed: 631, guards: 'a copy of the write that failed an attempt does not end the next one' },
  { seed: 40617, guards: 'a drain waits for a claim under way' },
  { seed: 62390, guards: 'a drain awaits no live call, also of a turn that began after it' },
  { seed: 63545, guards: 'a dispatch that failed frees no slot of the attempt that follows it' },
  {
    seed: 64283,
    guards: 'an order goes to the row that the body saw, not to one that lost against it',
  },
  { seed: 5233, guards: 'recovery parks no run whose steps it could not send' },
  { seed: 62873, guards: 'a fan keeps nothing of a row that lost against a result' },
  { seed: 108921, guards: 'a failure in flight is not retried before the store agrees' },
  { seed: 107719, guards: 'what an operator brought back may go on under its later links' },
]
