/**
 * Work that pauses at each `yield`. A command runs it at once. A process that serves requests runs
 * it in turns, because a configuration of hundreds of upstreams would keep them waiting.
 */
export type Steps<T> = Generator<undefined, T>

/** Runs all steps without a pause. */
export function runAtOnce<T>(steps: Steps<T>): T {
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

/** Runs one step in each turn of the event loop, so that requests get responses between them. */
export async function runInTurns<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next()
  while (step.done !== true) {
    await new Promise((resolve) => setImmediate(resolve))
    step = steps.next()
  }
  return step.value
}

/** How many entries of a list are one step. */
const entriesPerStep = 16

/** Maps the entries of a list, and pauses after each few of them. */
export function* mapInSteps<T, R>(list: readonly T[], map: (entry: T) => R): Steps<R[]> {
  const mapped: R[] = []
  for (const [index, entry] of list.entries()) {
    if (index % entriesPerStep === entriesPerStep - 1) yield
    mapped.push(map(entry))
  }
  return mapped
}
