/**
 * Measures processor time: the returned function returns the ms that this process has used since
 * this call. Time in which other processes use the processor does not count.
 */
export function processorTime(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
}
