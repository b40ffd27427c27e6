/**
 * A part of a list that still fails, from which no single item can be left out: delta debugging
 * (ddmin of Zeller and Hildebrandt, 2002). A list that does not fail is returned as it is. When
 * `fails` is not the same at each call, the result fails at least once.
 */
export async function shrink<T>(
  items: readonly T[],
  fails: (items: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  if (!(await fails(items))) return items
  let failing = items
  for (let parts = 2; failing.length > 0;) {
    const size = Math.ceil(failing.length / parts)
    const smaller = await firstThatFails(without(failing, size), fails)
    if (smaller !== undefined) {
      failing = smaller
      parts = Math.max(parts - 1, 2)
    } else if (size === 1) return failing
    else parts = Math.min(parts * 2, failing.length)
  }
  return failing
}

/** The lists that lack `size` items in a row. With halves, each is the other half. */
function without<T>(items: readonly T[], size: number): (readonly T[])[] {
  const starts = Array.from({ length: Math.ceil(items.length / size) }, (_, part) => part * size)
  return starts.map((start) => items.toSpliced(start, size))
}

async function firstThatFails<T>(
  lists: readonly (readonly T[])[],
  fails: (items: readonly T[]) => Promise<boolean>,
): Promise<readonly T[] | undefined> {
  for (const list of lists) if (await fails(list)) return list
  return undefined
}
