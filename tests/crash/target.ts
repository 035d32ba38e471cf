/*
 * The boundary at which a host stops. What a turn has ready goes into one commit, so whether two rows land
 * together or one after the other is up to the machine. With a slack, a target therefore also takes the
 * commit of the same owner that amounts to its own:
 *
 *   - with rows: the one after which all of them are written for the first time, whatever else it writes;
 *     a row counts as written in a later status too (`completed` comes after `running`);
 *   - that settles as well: the first that settles so and leaves none of the rows unwritten;
 *   - that only settles, for the nth time: the nth that settles so, or a later one, with rows or without.
 *
 * How often a run parks, is claimed or is asked to wake depends on which news come while a turn is under
 * way. So what a run does several times is reached up to `slack` times earlier. News claims a run that is
 * free and asks one that is busy to wake: in the end, with a slack of 3, the claim that a wake makes stands
 * for the request, and for the claim of a poll that was faster.
 */
interface Commit {
  owner: string
  rows: string[]
  settles?: string
  nth: number
}

const NEWS = /^(claim of what is|update of the run: wakeRequestedAt)/
const CLAIM_STANDS = 3
const ORDER = ['pending', 'running', 'failed', 'completed']

export class Target {
  readonly #label?: string
  readonly #slack: number
  readonly #commit?: Commit
  readonly #side: string
  readonly #what: string
  /** Per owner: what its commits have written, and how often they settled with each status. */
  readonly #written = new Map<string, Set<string>>()
  readonly #settled = new Map<string, number>()

  constructor(label: string | undefined, slack: number) {
    this.#label = label
    this.#slack = slack
    const [side, what] = splitLabel(label ?? '')
    this.#side = side
    this.#what = what
    this.#commit = commitOf(what)
  }

  /** Whether this boundary, the next one in the life of the host, is the one. */
  isAt(label: string): boolean {
    if (label === this.#label) return true
    const [side, what] = splitLabel(label)
    const commit = commitOf(what)
    if (!commit) return this.#slack > 0 && side === this.#side && this.#isEarlier(what)
    const isNear = this.#slack > 0 && side === this.#side && this.#amountsTo(commit)
    if (side === 'after') this.#note(commit)
    return isNear
  }

  #amountsTo(commit: Commit): boolean {
    const target = this.#commit
    if (!target || target.owner !== commit.owner) return false
    if (target.settles !== undefined && target.settles !== commit.settles) return false
    if (target.rows.length === 0) {
      // The count includes a commit only once it was noted, which is after both of its boundaries.
      return (this.#settled.get(keyOfSettle(commit)) ?? 0) + this.#slack >= target.nth
    }
    const written = this.#written.get(commit.owner) ?? new Set()
    const has = (rows: Iterable<string>) => (row: string) => covers(new Set(rows), row)
    if (target.settles === undefined && target.rows.every(has(written))) return false
    return target.rows.every(has([...written, ...commit.rows]))
  }

  #isEarlier(what: string): boolean {
    const [target, wanted] = numbered(this.#what)
    const [name, nth] = numbered(what)
    if (this.#slack >= CLAIM_STANDS && name === 'claim' && NEWS.test(target)) return true
    return name === target && nth >= wanted - this.#slack
  }

  #note(commit: Commit): void {
    const written = this.#written.get(commit.owner) ?? new Set()
    this.#written.set(commit.owner, written)
    for (const row of commit.rows) written.add(row)
    if (commit.settles === undefined) return
    const key = keyOfSettle(commit)
    this.#settled.set(key, (this.#settled.get(key) ?? 0) + 1)
  }
}

const keyOfSettle = ({ owner, settles }: Commit): string => `${owner} ${settles}`

function splitLabel(label: string): [side: string, what: string] {
  const space = label.indexOf(' ')
  return [label.slice(0, space), label.slice(space + 1)]
}

/** `claim (3)` is the third of its name. */
function numbered(what: string): [name: string, nth: number] {
  const [, name, nth = '1'] = what.match(/^(.*?)(?: \((\d+)\))?$/)!
  return [name, Number(nth)]
}

/** Reads what `labelOfCommit` said. */
function commitOf(what: string): Commit | undefined {
  const read = what.match(
    /^(commit(?: of recovery)?)((?: -?\d+:\w+)*)(?: → (\w+))?(?: \((\d+)\))?$/
  )
  if (!read) return undefined
  const [, owner, rows, settles, nth = '1'] = read
  return { owner, rows: rows.split(' ').filter(Boolean), settles, nth: Number(nth) }
}

function covers(written: Set<string>, row: string): boolean {
  if (written.has(row)) return true
  const [seq, status] = row.split(':')
  const at = ORDER.indexOf(status)
  return at >= 0 && ORDER.slice(at + 1).some((later) => written.has(`${seq}:${later}`))
}
