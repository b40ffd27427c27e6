/**
 * The candidate that `name` was most likely meant to be: a slip or two away, or spelt in another
 * case.
 */
export function didYouMean(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > 64) return undefined
  let best: { candidate: string; slips: number } | undefined
  for (const candidate of candidates) {
    const [a, b] = [plain(name), plain(candidate)]
    const slips = distance(a, b)
    const tolerated = Math.min(2, Math.floor(Math.min(a.length, b.length) / 3))
    if (slips <= tolerated && slips < (best?.slips ?? Infinity)) best = { candidate, slips }
  }
  return best?.candidate
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ .]/g, '')
}

/** How many letters have to be put in, left out, replaced, or exchanged with their neighbour. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (beforeLast[column - 2] ?? 0) + 1 : Infinity,
      )
    }
    beforeLast = last
    last = current
  }
  return last[b.length] ?? 0
}
