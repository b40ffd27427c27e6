const steps = 10

/**
 * Calls back after the given number of milliseconds in which this process could run. Time in which
 * the machine stalls does not count.
 *
 * @returns a function that cancels the call
 */
export function afterRunning(ms: number, then: () => void): () => void {
  let left = steps
  const timer = setInterval(() => {
    left -= 1
    if (left > 0) return
    clearInterval(timer)
    then()
  }, ms / steps)
  return () => clearInterval(timer)
}
