/*
 * Versions: the order in which "newest" is meant. Numeric when both are numbers, otherwise natural
 * (digit runs compare as numbers).
 */

/** Negative when `a` is older than `b`, positive when newer, 0 when they name the same version. */
export function compareVersions(a: string, b: string): number {
  const [numberA, numberB] = [Number(a), Number(b)]
  if (a.trim() !== '' && b.trim() !== '' && !Number.isNaN(numberA) && !Number.isNaN(numberB)) {
    if (numberA !== numberB) return numberA - numberB
    return compareText(a, b)
  }
  const partsOfA = a.match(/\d+|\D+/g) ?? []
  const partsOfB = b.match(/\d+|\D+/g) ?? []
  for (let i = 0; i < Math.min(partsOfA.length, partsOfB.length); i++) {
    const order = comparePart(partsOfA[i], partsOfB[i])
    if (order !== 0) return order
  }
  return partsOfA.length - partsOfB.length
}

function comparePart(a: string, b: string): number {
  const bothDigits = /^\d/.test(a) && /^\d/.test(b)
  return bothDigits ? Number(a) - Number(b) || compareText(a, b) : compareText(a, b)
}

/** Order by UTF-16 code units: the same everywhere, unlike a locale's. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
