/** A timer of this process was late, because the process had no processor, or was busy itself. */
export interface Lateness {
  /** On the clock of `performance`: the last time that the timer was right, and now. */
  readonly begin: number
  readonly end: number
  readonly ms: number
}

/** In ms: how often a timer is to run, and the shortest delay that counts. */
const [tickMs, noticeableMs] = [20, 40]

/** Tells of each delay of a timer of this process until the returned function is called. */
export function watchTimers(onLate: (late: Lateness) => void): () => void {
  let last = performance.now()
  const ticking = setInterval(() => {
    const [begin, end] = [last, performance.now()]
    last = end
    const ms = end - begin - tickMs
    if (ms > noticeableMs) onLate({ begin, end, ms })
  }, tickMs)
  ticking.unref()
  return () => clearInterval(ticking)
}
