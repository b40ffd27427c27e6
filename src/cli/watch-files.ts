import { stampOf } from '../config/document/files.ts'

/** How often the files are looked at, in ms. */
const lookEveryMs = 2_000

export interface FileWatch {
  /**
   * From now on these are looked at; what is known of each is its stamp from before it was read.
   */
  watch(files: ReadonlyMap<string, string>): void
  stop(): void
}

/**
 * Tells when one of the files was changed, replaced, removed or came since it was read, and all of
 * them have been left alone for a look since: whoever writes several is not met in the middle. It
 * looks again and again, for what waits to be told misses the ways in which a container's
 * configuration is replaced, behind links.
 */
export function watchFiles(onChange: () => void, everyMs = lookEveryMs): FileWatch {
  let files: readonly string[] = []
  let known = ''
  let last = ''
  const look = () => {
    const found = files.map(stampOf).join()
    const isSettled = found === last
    last = found
    if (!isSettled || found === known) return
    known = found
    onChange()
  }
  const timer = setInterval(look, everyMs).unref()
  return {
    watch: (read) => {
      files = [...read.keys()]
      known = last = [...read.values()].join()
    },
    stop: () => clearInterval(timer),
  }
}
