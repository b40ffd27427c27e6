import { stampOf } from '../config/document/files.ts'

/** How often the files are checked, in ms. */
const pollEveryMs = 2_000

export interface FileWatch {
  /** Watches these files from now on. Each has the stamp that it had before it was read. */
  watch(files: ReadonlyMap<string, string>): void
  stop(): void
}

/**
 * Calls `onChange` after a file was changed, replaced, removed or created. It waits until no file
 * changes between two checks, because a program may write several files. It polls, because
 * `fs.watch` does not notice when a symbolic link leads elsewhere, as in a container.
 */
export function watchFiles(onChange: () => void, everyMs = pollEveryMs): FileWatch {
  let files: readonly string[] = []
  let reported = ''
  let last = ''
  const poll = () => {
    const found = files.map(stampOf).join()
    const isSettled = found === last
    last = found
    if (!isSettled || found === reported) return
    reported = found
    onChange()
  }
  const timer = setInterval(poll, everyMs).unref()
  return {
    watch: (read) => {
      files = [...read.keys()]
      reported = last = [...read.values()].join()
    },
    stop: () => clearInterval(timer),
  }
}
