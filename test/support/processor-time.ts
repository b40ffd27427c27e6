/**
 * Tells for how many milliseconds this process has had a processor since: they do not pass while
 * others have it.
 */
export function processorTime(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
}
