/**
 * Keeps the process busy for a time in ms, so that no timer runs and no socket is read. It sleeps,
 * because other tests need the processor.
 */
export function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
