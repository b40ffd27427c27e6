/** Functions to call, each followed by its argument. */
let due: unknown[] = []
const settled = Promise.resolve()

/**
 * Calls a function after the current event was handled, and before the next one. Functions are
 * called in their order, as a microtask: after the ticks of an event, and before ticks that another
 * microtask adds. An error is reported as an unhandled rejection. `process.nextTick` costs more,
 * because Node.js creates an asynchronous context for each tick.
 */
export function atEndOfTurn<Subject>(call: (subject: Subject) => void, subject: Subject): void {
  if (due.length === 0) void settled.then(endTurn)
  due.push(call, subject)
}

function endTurn(): void {
  let at = 0
  try {
    // Functions may add others.
    for (; at < due.length; at += 2) (due[at] as (subject: unknown) => void)(due[at + 1])
  } finally {
    due = due.length === at ? [] : due.slice(at + 2)
    if (due.length > 0) void settled.then(endTurn)
  }
}
