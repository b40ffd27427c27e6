/** V8 draws conclusions from what a function reads only after the function has run for a while. */
const reads = 1_000

/**
 * Makes the methods of all strings fast. V8 turns the prototype of strings into a dictionary when
 * code extends `String`, as a class of ioredis does, and compiled code looks each method up from
 * then on. V8 turns it back when a property of a `String` object is read. That lasts: later classes
 * do not change it.
 */
export function makeStringsFast(): void {
  const text = Object('') as string
  for (let read = 0; read < reads; read++) void text.slice
}
