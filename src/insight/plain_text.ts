/*
 * Sentences as one line of plain text, and lengths of time in a few characters. Pure.
 */
import type { Sentence } from '../types/explanation.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `45s`, `12m3s`, `4h32m`, `2d6h`: two units at most, negative as 0. */
export function compactAge(ms: number): string {
  const whole = Math.max(0, Math.floor(ms / SECOND)) * SECOND
  const parts: [number, string][] = [
    [Math.floor(whole / DAY), 'd'],
    [Math.floor((whole % DAY) / HOUR), 'h'],
    [Math.floor((whole % HOUR) / MINUTE), 'm'],
    [(whole % MINUTE) / SECOND, 's'],
  ]
  const first = parts.findIndex(([count]) => count > 0)
  if (first < 0) return '0s'
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0)
  return shown.map(([count, unit]) => `${count}${unit}`).join('')
}

/** A sentence, with ages as of `nowMs` and instants in UTC. Control characters are shown, not sent. */
export function plainText(sentence: Sentence, nowMs: number): string {
  const parts = sentence.map((part) => {
    if (typeof part === 'string') return part
    if ('time' in part) return instant(part.time, nowMs)
    if ('since' in part) return compactAge(nowMs - part.since)
    if ('span' in part) return compactAge(part.span)
    return 'run' in part ? part.run : part.mono
  })
  return visible(parts.join(''))
}

function instant(at: number, nowMs: number): string {
  const text = `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
  return at > nowMs
    ? `${text} (in ${compactAge(at - nowMs)})`
    : `${text} (${compactAge(nowMs - at)} ago)`
}

/** Control characters and what turns the direction of text, as escapes: a terminal would obey them. */
export const visible = (text: string): string =>
  text.replaceAll(/[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.codePointAt(0)!.toString(16)
    return `\\u${code.padStart(4, '0')}`
  })
