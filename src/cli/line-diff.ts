import { shownLine } from '../config/document/diagnostics.ts'

/**
 * The lines that differ between two texts of a configuration, as a unified diff without context;
 * empty without any. Hides possible secrets.
 */
export function lineDiff(file: string, before: string, after: string): string {
  const [a, b] = [before.split('\n'), after.split('\n')]
  const common = commonLines(a, b)
  const hunks: string[] = []
  let [x, y] = [0, 0]
  for (const [nextX, nextY] of [...common, [a.length, b.length] as const]) {
    const [removed, added] = [a.slice(x, nextX), b.slice(y, nextY)]
    if (removed.length + added.length > 0) {
      const lines = [...removed.map((line) => `-${shownLine(line)}\n`), ...added.map((line) => `+${shownLine(line)}\n`)]
      hunks.push(`@@ -${range(x, removed.length)} +${range(y, added.length)} @@\n${lines.join('')}`)
    }
    ;[x, y] = [nextX + 1, nextY + 1]
  }
  return hunks.length === 0 ? '' : `--- ${file}\n+++ ${file}\n${hunks.join('')}`
}

/** The start of an empty range is the line before it. */
function range(start: number, length: number): string {
  return length === 1 ? String(start + 1) : `${length === 0 ? start : start + 1},${length}`
}

/** How far apart the same line may be in both texts. */
const maxDistance = 200

/** The places of lines that both texts have, in order. Each line is the next one of its kind. */
function commonLines(a: readonly string[], b: readonly string[]): (readonly [number, number])[] {
  const common: (readonly [number, number])[] = []
  let [x, y] = [0, 0]
  while (x < a.length && y < b.length) {
    const inB = b.slice(y, y + maxDistance).indexOf(a[x] as string)
    const inA = a.slice(x, x + maxDistance).indexOf(b[y] as string)
    if (inB === 0) common.push([x++, y++])
    else if (inB > 0 && (inA < 0 || inB <= inA)) y += inB
    else if (inA > 0) x += inA
    else [x, y] = [x + 1, y + 1]
  }
  return common
}
