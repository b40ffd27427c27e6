/** The memory of a request beside its head, in bytes (measured). */
const requestBytes = 6 * 1024

/**
 * An estimate of the memory of a request without its content, in bytes: its text, the values that
 * are made of it, and the objects that serve it.
 * @param headBytes the length of its head
 */
export function requestMemory(headBytes: number): number {
  return requestBytes + 2 * headBytes
}

/**
 * How much content of a request that has not arrived completely may be in use, in bytes: a form, or
 * what is on its way to the upstream.
 */
export const contentInUseBytes = 16 * 1024
