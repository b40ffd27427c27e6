// Writes the report into docs/performance.md: each section between the two comments that mark it.

/** The comments around a section. */
export function markersOf(section: string): readonly [string, string] {
  return [`<!-- bench ${section}: begin -->`, `<!-- bench ${section}: end -->`]
}

/** Whether the page shows a section: it need not have those that no target refers to. */
export function hasSection(page: string, section: string): boolean {
  return markersOf(section).some((marker) => page.includes(marker))
}

/**
 * The page with other content in one section. Everything else stays the same, to the byte.
 * @throws {Error} when the page does not have each marker once, the first one first
 */
export function replaceSection(page: string, section: string, content: string): string {
  const [begin, end] = markersOf(section).map((marker) => placeOf(page, marker)) as [Place, Place]
  if (end.start < begin.end) throw new Error(`the markers of ${section} are in the wrong order`)
  return `${page.slice(0, begin.end)}\n\n${content.trim()}\n\n${page.slice(end.start)}`
}

interface Place {
  readonly start: number
  readonly end: number
}

function placeOf(page: string, marker: string): Place {
  const start = page.indexOf(marker)
  if (start < 0 || page.includes(marker, start + 1)) throw new Error(`the page must have "${marker}" once`)
  return { start, end: start + marker.length }
}
