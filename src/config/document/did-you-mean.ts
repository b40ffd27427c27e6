/**
 * The candidate that is closest to `name`: at most two edits away, ignoring case and separators.
 * `undefined` when none is close enough.
 */
export function didYouMean(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > 64) return undefined
  let best: { candidate: string; edits: number } | undefined
  for (const candidate of candidates) {
    const [a, b] = [plain(name), plain(candidate)]
    const edits = distance(a, b)
    const [shorter, longer] = [Math.min(a.length, b.length), Math.max(a.length, b.length)]
    // `ur` is `url`, but `id` is not `ip`.
    const tolerated = shorter === 2 && longer === 3 ? 1 : Math.min(2, Math.floor(shorter / 3))
    if (edits <= tolerated && edits < (best?.edits ?? Infinity)) best = { candidate, edits }
  }
  return best?.candidate
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ .]/g, '')
}

/**
 * The optimal string alignment distance: insertions, deletions, replacements and swaps of
 * neighbours.
 */
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
