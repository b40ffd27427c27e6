const steps = 10

/**
 * Calls back after so many milliseconds in which this process could run: when the machine stalls,
 * none pass. Answers how to stop that.
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
