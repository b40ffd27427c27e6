/** Work in steps: a large amount of it need not keep the event loop from turning. */
export type Steps<T> = Generator<undefined, T>

/** Does all steps at once. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

/** Lets the event loop turn after each step, so that requests get their responses meanwhile. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next()
  while (step.done !== true) {
    await new Promise((resolve) => setImmediate(resolve))
    step = steps.next()
  }
  return step.value
}

/** How many entries of a list are one step. */
const entriesOfAStep = 16

/** Maps the entries of a list, some in each step. */
export function* mapInSteps<T, R>(list: readonly T[], map: (entry: T) => R): Steps<R[]> {
  const mapped: R[] = []
  for (const [index, entry] of list.entries()) {
    if (index % entriesOfAStep === entriesOfAStep - 1) yield
    mapped.push(map(entry))
  }
  return mapped
}
