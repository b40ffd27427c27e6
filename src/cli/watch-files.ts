import { statSync } from 'node:fs'

/** How often the files are looked at, in ms. */
const lookEveryMs = 2_000

export interface FileWatch {
  /** From now on these are looked at. */
  watch(files: readonly string[]): void
  stop(): void
}

/**
 * Tells when one of the files was changed, replaced, removed or came, and all of them have been left alone for a look since: whoever
 * writes several is not met in the middle. It looks again and again, for what waits to be told misses the ways in which a
 * container's configuration is replaced, behind links.
 */
export function watchFiles(onChange: () => void, everyMs = lookEveryMs): FileWatch {
  let files: readonly string[] = []
  let known = ''
  let last = ''
  const look = () => {
    const found = stampOf(files)
    const isSettled = found === last
    last = found
    if (!isSettled || found === known) return
    known = found
    onChange()
  }
  const timer = setInterval(look, everyMs).unref()
  return {
    watch: (next) => {
      files = next
      known = last = stampOf(files)
    },
    stop: () => clearInterval(timer),
  }
}

function stampOf(files: readonly string[]): string {
  return files.map(stampOfOne).join('\n')
}

function stampOfOne(file: string): string {
  try {
    const { dev, ino, size, mtimeNs } = statSync(file, { bigint: true })
    return `${dev}:${ino}:${size}:${mtimeNs}`
  } catch {
    return 'not there'
  }
}
