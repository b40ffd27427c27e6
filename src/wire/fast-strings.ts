/** How often a property is read: V8 reacts only to code that has run for a while. */
const reads = 1_000

/**
 * Makes the methods of all strings fast. When code extends `String`, as a class of ioredis does, V8
 * turns the prototype of strings into a dictionary. From then on, compiled code looks each method
 * up. V8 turns the prototype back when a property of a `String` object is read. That lasts: later
 * classes do not change it (tested by
 * test/regressions/a-class-of-a-package-makes-all-strings-slow.test.ts).
 */
export function makeStringsFast(): void {
  const text = Object('') as string
  for (let read = 0; read < reads; read++) void text.slice
}
