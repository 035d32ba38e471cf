/*
 * Wall-clock time of a zone: its offset at an instant, and the instants at which its clocks show a time.
 * A local time is written as the epoch ms that UTC would show.
 */

const DAY = 86_400_000
/** Further than any zone is from UTC, and longer than any change of an offset takes. */
const AROUND = DAY + 2 * 3_600_000

export class Zone {
  readonly #format?: Intl.DateTimeFormat

  /** Throws `RangeError` for a zone that is none. */
  constructor(name: string) {
    if (name === 'UTC') return
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' })
  }

  /** What local time is ahead of UTC by at an instant; ms. */
  offsetAt(instant: number): number {
    if (!this.#format) return 0
    const parts = this.#format.formatToParts(instant)
    const text = parts.find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const match = /^GMT([+-])(\d+):(\d+)(?::(\d+))?$/.exec(text)
    if (!match) return 0
    const [, sign, hours, minutes, seconds = '0'] = match
    const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000
    return sign === '-' ? -ms : ms
  }

  /** The least and the greatest offset around an instant. */
  offsetsAround(instant: number): [least: number, greatest: number] {
    const offsets = [instant - AROUND, instant, instant + AROUND].map((at) => this.offsetAt(at))
    return [Math.min(...offsets), Math.max(...offsets)]
  }

  /**
   * The instants at which clocks show a local time: one, two when they are set back over it, none when
   * they are set forward over it. `moved` is then the instant that they would have shown it without the
   * change.
   */
  instantsOf(local: number): { instants: number[]; moved: number } {
    const before = this.offsetAt(local - AROUND)
    const after = this.offsetAt(local + AROUND)
    const moved = local - before
    const candidates = before === after ? [moved] : [moved, local - after]
    const instants = candidates.filter((at) => at + this.offsetAt(at) === local)
    return { instants: instants.sort((a, b) => a - b), moved }
  }
}
